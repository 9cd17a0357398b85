package dev.penstock.actors.dataplane.aeron;

import io.aeron.driver.MediaDriver;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;

/**
 * A media driver in a process of its own: {@code MediaDriverMain DIRECTORY TERM_LENGTH POLLER_MODE
 * PUBLICATIONS}. Says {@value #READY} on its standard output once clients may connect, and lives
 * until its standard input ends, that is until its parent closes it or dies. Signals that ask it to
 * end, such as the terminal's interrupt, make it wait for that, too, since the stages still need it
 * to finish their step.
 */
public final class MediaDriverMain {
    static final String READY = "MEDIA DRIVER READY";
    static final String ENDS = "MEDIA DRIVER ENDS: ";

    private final CountDownLatch inputEnded = new CountDownLatch(1);
    private final Path directory;
    private final MediaDriver driver;

    private MediaDriverMain(
            Path directory, int termLengthBytes, PollerMode idle, int publications) {
        this.directory = directory;
        this.driver =
                MediaDriver.launch(
                        DriverContexts.of(directory, termLengthBytes, idle, publications));
    }

    public static void main(String[] arguments) throws IOException {
        MediaDriverMain main =
                new MediaDriverMain(
                        Path.of(arguments[0]),
                        Integer.parseInt(arguments[1]),
                        PollerMode.valueOf(arguments[2]),
                        Integer.parseInt(arguments[3]));
        Runtime.getRuntime().addShutdownHook(new Thread(main::endWithInput, "end-with-input"));
        main.sayReady();
        main.awaitEndOfInput();
        System.exit(0);
    }

    /** The driver's own thread runs on while the process waits here. */
    private void endWithInput() {
        try {
            inputEnded.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        UdpTraffic.of(driver).ifPresent(line -> tellParent(ENDS + line));
        driver.close();
        DriverDirectory.delete(directory);
    }

    private void sayReady() {
        tellParent(READY + " " + directory);
    }

    private static void tellParent(String line) {
        new PrintStream(new FileOutputStream(FileDescriptor.out), true).println(line);
    }

    private void awaitEndOfInput() throws IOException {
        try {
            while (System.in.read() >= 0) {
                Thread.onSpinWait(); // nothing is ever said; only the end matters
            }
        } finally {
            inputEnded.countDown();
        }
    }
}
