package dev.penstock.actors.dataplane.aeron;

import io.aeron.driver.MediaDriver;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import sun.misc.Signal;

/**
 * A media driver in a process of its own: {@code MediaDriverMain DIRECTORY TERM_LENGTH}. Says
 * {@value #READY} on its standard output once clients may connect, and lives until its standard
 * input ends, that is until its parent closes it or dies. It ignores the terminal's interrupt,
 * since the stages still need it to finish their step.
 */
public final class MediaDriverMain {
    static final String READY = "MEDIA DRIVER READY";

    private MediaDriverMain() {}

    public static void main(String[] arguments) throws IOException {
        Signal.handle(new Signal("INT"), _ -> {});
        Path directory = Path.of(arguments[0]);
        int termLengthBytes = Integer.parseInt(arguments[1]);
        Thread cleanUp = new Thread(() -> DriverDirectory.delete(directory), "clean-up");
        Runtime.getRuntime().addShutdownHook(cleanUp);
        try (MediaDriver driver =
                MediaDriver.launch(DriverContexts.of(directory, termLengthBytes))) {
            sayReady(driver.aeronDirectoryName());
            while (System.in.read() >= 0) {
                Thread.onSpinWait(); // nothing is ever said; only the end matters
            }
        }
        System.exit(0); // the hook removes the directory
    }

    private static void sayReady(String directory) {
        PrintStream parent = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
        parent.println(READY + " " + directory);
    }
}
