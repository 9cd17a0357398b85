package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.ForkedJava;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The program in its own JVM, which is killed when this is closed. */
public final class ForkedCli implements RunningCli {
    /** The setting of a training whose processes do well without the optimising compiler. */
    public static final String PLAIN_CODE = "device.kind=reference";

    static final String NO_OPTIMISER = "-XX:TieredStopAtLevel=1";

    private final Process process;
    private final Path output;

    private ForkedCli(Process process, Path output) {
        this.process = process;
        this.output = output;
    }

    public static ForkedCli start(String... arguments) throws IOException {
        return start(List.of(arguments));
    }

    /** Starts the program as the launcher does. */
    public static ForkedCli start(List<String> arguments, String... settings) throws IOException {
        return start(Path.of("").toAbsolutePath(), launched(List.of()), arguments, settings);
    }

    /**
     * Starts it with additional environment variables, for it and for the processes that it starts,
     * and with additional flags of the JVM.
     */
    static ForkedCli start(Map<String, String> environment, List<String> arguments, String... flags)
            throws IOException {
        List<String> command = ForkedJava.command(flags);
        command.addAll(arguments);
        return start(Path.of("").toAbsolutePath(), environment, command);
    }

    /**
     * Starts a process that computes nothing, or with {@link #PLAIN_CODE}: it lives for seconds, so
     * it does without the optimising compiler.
     */
    public static ForkedCli startLight(List<String> arguments, String... settings)
            throws IOException {
        return startLightWith(List.of(), arguments, settings);
    }

    /**
     * Starts it as {@link #startLight} does, through another command.
     *
     * @param starter executes its arguments in the end, in the same process
     */
    public static ForkedCli startLightWith(
            List<String> starter, List<String> arguments, String... settings) throws IOException {
        return start(
                Path.of("").toAbsolutePath(), launched(starter, NO_OPTIMISER), arguments, settings);
    }

    /**
     * Starts it as {@link #start(List, String...)} does, in a folder: relative paths are resolved
     * there.
     */
    public static ForkedCli startIn(Path folder, List<String> arguments, String... settings)
            throws IOException {
        return start(folder, launched(List.of()), arguments, settings);
    }

    private static List<String> launched(List<String> starter, String... flags) throws IOException {
        List<String> all = new ArrayList<>(List.of("-Xmx512m"));
        all.addAll(List.of(flags));
        List<String> command = new ArrayList<>(starter);
        command.addAll(ForkedJava.command(all.toArray(String[]::new)));
        return command;
    }

    private static ForkedCli start(
            Path folder, List<String> launched, List<String> arguments, String... settings)
            throws IOException {
        List<String> command = new ArrayList<>(launched);
        command.addAll(withSettings(arguments, settings));
        return start(folder, Map.of(), command);
    }

    private static ForkedCli start(
            Path folder, Map<String, String> environment, List<String> command) throws IOException {
        Path output = Files.createTempFile("penstock-cli-", ".txt");
        output.toFile().deleteOnExit();
        ProcessBuilder forked =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(output.toFile());
        forked.environment().putAll(environment);
        return new ForkedCli(forked.start(), output);
    }

    static List<String> withSettings(List<String> arguments, String... settings) {
        List<String> all = new ArrayList<>(arguments);
        for (String setting : settings) {
            all.addAll(List.of("--set", setting));
        }
        return all;
    }

    @Override
    public void interrupt() throws Exception {
        signal("INT");
    }

    /** Sends a signal by its name, such as INT. */
    public void signal(String name) throws Exception {
        Process kill = new ProcessBuilder("kill", "-" + name, "" + process.pid()).start();
        assertThat(kill.waitFor(10, TimeUnit.SECONDS)).isTrue();
        assertThat(kill.exitValue()).isZero();
    }

    ProcessHandle handle() {
        return process.toHandle();
    }

    public List<ProcessHandle> descendants() {
        return process.descendants().toList();
    }

    @Override
    public boolean isAlive() {
        return process.isAlive();
    }

    @Override
    public int awaitEnd(Duration limit) throws InterruptedException {
        boolean ended = process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
        assertThat(ended).as(() -> "still running after " + limit + ": " + output()).isTrue();
        return process.exitValue();
    }

    @Override
    public String output() {
        try {
            return Files.readString(output);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
    }
}
