package dev.penstock.actors.fault;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a fault does to the process it happens in. */
public interface ProcessHarm {
    /** Ends the process at once, with nothing closed or told. */
    void kill();

    /** Stands still this long. */
    void pause(Duration length);

    /** The exit code of a process that was ended by signal 9. */
    int KILLED = 137;

    /** Harm to a process of its own: no thread of it runs during a pause. */
    ProcessHarm WHOLE_PROCESS =
            new ProcessHarm() {
                private static final Logger LOG = LoggerFactory.getLogger(ProcessHarm.class);

                @Override
                public void kill() {
                    Runtime.getRuntime().halt(KILLED);
                }

                @Override
                public void pause(Duration length) {
                    long pid = ProcessHandle.current().pid();
                    String stopAndGo =
                            "kill -STOP %d; sleep %.3f; kill -CONT %d"
                                    .formatted(pid, length.toMillis() / 1e3, pid);
                    try {
                        new ProcessBuilder("sh", "-c", stopAndGo).start().waitFor();
                    } catch (IOException e) {
                        LOG.warn("no signals here ({}): only this thread pauses", e.getMessage());
                        ONE_THREAD.pause(length);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                }
            };

    /** For a process that is more than a rank: only the rank's thread pauses. */
    ProcessHarm ONE_THREAD =
            new ProcessHarm() {
                @Override
                public void kill() {
                    WHOLE_PROCESS.kill();
                }

                @Override
                public void pause(Duration length) {
                    long end = System.nanoTime() + length.toNanos();
                    for (long left = length.toNanos(); left > 0; left = end - System.nanoTime()) {
                        LockSupport.parkNanos(left);
                    }
                }
            };
}
