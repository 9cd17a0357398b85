package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.ForkedJava;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/** A training run in its own JVM, so that it can be killed. */
public final class ForkedTraining implements AutoCloseable {
    private static final Duration START = Duration.ofSeconds(90);

    private final Training training;
    private final Process process;
    private final Path output;

    private ForkedTraining(Training training, Process process, Path output) {
        this.training = training;
        this.process = process;
        this.output = output;
    }

    /**
     * Starts the training as the launcher does.
     *
     * @param flags additional flags of the JVM
     */
    public static ForkedTraining start(Training training, String... flags) throws IOException {
        return start(Map.of(), training, flags);
    }

    /**
     * Starts it as {@link #start(Training, String...)} does, with additional environment variables
     * for it and for the processes that it starts.
     */
    public static ForkedTraining start(
            Map<String, String> environment, Training training, String... flags)
            throws IOException {
        List<String> command = ForkedJava.command(flags);
        command.addAll(training.arguments());
        Path output = training.configuration().resolveSibling("output.txt");
        ProcessBuilder forked = new ProcessBuilder(command);
        forked.environment().putAll(environment);
        Process process = forked.redirectErrorStream(true).redirectOutput(output.toFile()).start();
        return new ForkedTraining(training, process, output);
    }

    /**
     * Waits until so many steps are committed. Fails if the run ends before; then no process is
     * left, since the caller may not hold it yet.
     */
    public ForkedTraining awaitSteps(int steps) {
        boolean committed = false;
        try {
            await().atMost(START)
                    .pollInterval(Duration.ofMillis(50))
                    .until(
                            () -> {
                                assertThat(process.isAlive()).as(this::output).isTrue();
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

    /** Sends a signal by its name, such as INT. */
    public void signal(String name) throws Exception {
        signal(name, process.toHandle());
    }

    /** Sends a signal to one of the run's processes. */
    public static void signal(String name, ProcessHandle to) throws Exception {
        Process kill = new ProcessBuilder("kill", "-" + name, "" + to.pid()).start();
        assertThat(kill.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(kill.exitValue()).isZero();
    }

    /** The process and all its descendants. */
    public List<ProcessHandle> family() {
        List<ProcessHandle> family = new ArrayList<>(process.descendants().toList());
        family.add(process.toHandle());
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
        return child(
                "the media driver",
                words -> words.stream().anyMatch(word -> word.endsWith(".MediaDriverMain")));
    }

    private ProcessHandle child(String name, Predicate<List<String>> isIt) throws IOException {
        for (ProcessHandle child : process.children().toList()) {
            Path command = Path.of("/proc/" + child.pid() + "/cmdline");
            if (isIt.test(List.of(Files.readString(command).split("\0")))) {
                return child;
            }
        }
        throw new AssertionError("no process of " + name + ": " + output());
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
        boolean ended = process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
        assertThat(ended).as(() -> "still running after " + limit + ": " + output()).isTrue();
        return new Trained(training.directory(), process.exitValue(), output(), "");
    }

    /** Returns the output so far. */
    public String output() {
        try {
            return Files.readString(output);
        } catch (IOException e) {
            return "no output: " + e.getMessage();
        }
    }

    @Override
    public void close() {
        family().forEach(ProcessHandle::destroyForcibly);
    }
}
