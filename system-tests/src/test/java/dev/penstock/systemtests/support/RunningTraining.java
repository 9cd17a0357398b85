package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * A training under way: in a JVM of its own, where it is to be killed, or on a thread of the
 * test's, where only its stage processes or its media driver are.
 */
public final class RunningTraining implements AutoCloseable {
    private static final Duration START = Duration.ofSeconds(90);

    private final Training training;
    private final RunningCli cli;

    private RunningTraining(Training training, RunningCli cli) {
        this.training = training;
        this.cli = cli;
    }

    /**
     * Starts the training as the launcher does.
     *
     * @param flags additional flags of the JVM
     */
    public static RunningTraining start(Training training, String... flags) throws IOException {
        return start(Map.of(), training, flags);
    }

    /**
     * Starts it as {@link #start(Training, String...)} does, with additional environment variables
     * for it and for the processes that it starts.
     */
    public static RunningTraining start(
            Map<String, String> environment, Training training, String... flags)
            throws IOException {
        List<String> all = new ArrayList<>(List.of(flags));
        if (training.settings().contains(ForkedCli.PLAIN_CODE)) {
            all.add(ForkedCli.NO_OPTIMISER);
        }
        return new RunningTraining(
                training,
                ForkedCli.start(environment, training.arguments(), all.toArray(String[]::new)));
    }

    /** Starts it in this JVM; the processes that it starts are real ones. */
    public static RunningTraining host(Training training) throws IOException {
        return new RunningTraining(training, HostedCli.start(training.arguments()));
    }

    /**
     * Waits until so many steps are committed. Fails if the run ends before; then no process is
     * left, since the caller may not hold it yet.
     */
    public RunningTraining awaitSteps(int steps) {
        boolean committed = false;
        try {
            await().atMost(START)
                    .pollInterval(Duration.ofMillis(50))
                    .until(
                            () -> {
                                assertThat(cli.isAlive()).as(this::output).isTrue();
                                return Trained.steps(training.directory()) >= steps;
                            });
            committed = true;
            return this;
        } finally {
            if (!committed) {
                close();
            }
        }
    }

    /** Asks the run to save and to end, as Ctrl-C does. */
    public void interrupt() throws Exception {
        cli.interrupt();
    }

    /** Sends a signal by its name, such as TERM. */
    public void signal(String name) throws Exception {
        process().signal(name);
    }

    private ForkedCli process() {
        if (cli instanceof ForkedCli forked) {
            return forked;
        }
        throw new IllegalStateException("this training has no process of its own");
    }

    /** Sends a signal to one of the run's processes. */
    public static void signal(String name, ProcessHandle to) throws Exception {
        Process kill = new ProcessBuilder("kill", "-" + name, "" + to.pid()).start();
        assertThat(kill.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(kill.exitValue()).isZero();
    }

    /** The process of its own and all its descendants. */
    public List<ProcessHandle> family() {
        List<ProcessHandle> family = new ArrayList<>(process().descendants());
        family.add(process().handle());
        return family;
    }

    /** The process of a rank in a run with one process per stage. */
    public ProcessHandle ofRank(int rank) throws IOException {
        return child(
                "rank " + rank,
                words -> {
                    int main = words.indexOf("dev.penstock.runtime.launch.StageProcess");
                    return main >= 0 && words.get(main + 2).equals("" + rank);
                });
    }

    /** The media driver's process. */
    public ProcessHandle driver() throws IOException {
        return child("the media driver", RunningTraining::isDriver);
    }

    private static boolean isDriver(List<String> words) {
        return words.stream().anyMatch(word -> word.endsWith(".MediaDriverMain"));
    }

    private ProcessHandle child(String name, Predicate<List<String>> isIt) throws IOException {
        for (ProcessHandle child : started()) {
            if (isIt.test(words(child))) {
                return child;
            }
        }
        throw new AssertionError("no process of " + name + ": " + output());
    }

    /**
     * Returns the processes that the run has started: stages and a media driver. Of trainings in
     * this JVM only one may run at a time.
     */
    public List<ProcessHandle> started() {
        ProcessHandle parent =
                cli instanceof ForkedCli forked ? forked.handle() : ProcessHandle.current();
        return parent.children().toList();
    }

    private static List<String> words(ProcessHandle process) throws IOException {
        Path command = Path.of("/proc/" + process.pid() + "/cmdline");
        try {
            return List.of(Files.readString(command).split("\0"));
        } catch (NoSuchFileException e) {
            return List.of(); // it has just ended
        }
    }

    /** Returns what the run and its processes have written to this file of its directory so far. */
    public String log(String name) {
        Path log = training.directory().resolve(name);
        try {
            return Files.exists(log) ? Files.readString(log) : "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Waits for the end and returns the result, with everything that was printed in {@code out}.
     */
    public Trained awaitEnd(Duration limit) throws InterruptedException {
        int exitCode = cli.awaitEnd(limit);
        return new Trained(training.directory(), exitCode, output(), "");
    }

    /** Returns the output so far. */
    public String output() {
        return cli.output();
    }

    /** Leaves none of its processes behind, not even one that is suspended. */
    @Override
    public void close() {
        List<ProcessHandle> left = started();
        try {
            cli.close();
        } finally {
            left.forEach(ProcessHandle::destroyForcibly);
        }
    }
}
