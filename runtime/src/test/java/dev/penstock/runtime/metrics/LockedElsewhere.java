package dev.penstock.runtime.metrics;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Another process that tries to take a run's directory and keeps it until its input ends. */
final class LockedElsewhere implements AutoCloseable {
    private final Process process;
    private final BufferedReader said;

    private LockedElsewhere(Process process) {
        this.process = process;
        this.said =
                new BufferedReader(
                        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    static LockedElsewhere start(Path directory) throws IOException {
        return new LockedElsewhere(
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                LockedElsewhere.class.getName(),
                                directory.toString())
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start());
    }

    /** What came of it: "taken", or why not. */
    String answer() throws IOException {
        return String.valueOf(said.readLine());
    }

    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    public static void main(String[] arguments) throws IOException {
        try (RunLock _ = new RunDirectory(Path.of(arguments[0])).lock()) {
            System.out.println("taken");
            while (System.in.read() >= 0) {
                // until nobody wants it any more
            }
        } catch (RunDirectoryException e) {
            System.out.println(e.getMessage());
        }
    }
}
