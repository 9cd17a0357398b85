package dev.penstock.actors.dataplane.aeron;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.fault.ProcessHarm;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A media driver beside the processes of a run, so that no stage's death cuts its neighbours'
 * links. The driver ends with this object or with this process, whichever comes first.
 */
public final class MediaDriverProcess implements MediaDriverHandle {
    private static final Logger LOG = LoggerFactory.getLogger(MediaDriverProcess.class);
    private static final Duration STOP_DEADLINE = Duration.ofSeconds(5);
    private static final int LINES_KEPT = 20;

    /** Small and quick to start: no data passes through the driver's heap. */
    private static final List<String> JVM_FLAGS =
            List.of(
                    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
                    "--enable-native-access=ALL-UNNAMED",
                    "--sun-misc-unsafe-memory-access=allow",
                    "-Xmx128m",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    "-XX:-UsePerfData");

    /**
     * An archive of classes that this process started with serves the driver as well, which then
     * starts in two thirds of the time; where it does not fit the driver's flags, it is ignored.
     */
    private static final List<String> ARCHIVE_FLAGS =
            List.of(
                    "-XX:SharedArchiveFile=",
                    "-XX:AOTCache=",
                    "-Xlog:aot",
                    "-Xlog:cds",
                    "-Xlog:class+path");

    private final Path directory;
    private final Process process;
    private final CompletableFuture<Boolean> ready = new CompletableFuture<>();
    private final Queue<String> lastLines = new ArrayDeque<>();
    private volatile boolean closing;

    private final Thread reader =
            Thread.ofPlatform().daemon().name("media-driver-output").unstarted(this::readOutput);

    private MediaDriverProcess(Path directory, Process process) {
        this.directory = directory;
        this.process = process;
    }

    /**
     * Starts the driver and waits until clients may connect.
     *
     * @param deadline for the start
     * @param onDeath told once, in a sentence, if the driver ends before {@link #close}; on a
     *     thread of its own
     * @throws DataPlaneException if shared memory has no room for the run, or the driver does not
     *     start in time; with what it said
     */
    public static MediaDriverProcess start(
            DriverSettings settings, Duration deadline, Consumer<String> onDeath) {
        SharedMemoryBudget.require(
                settings.parent(), settings.termLengthBytes(), settings.publications());
        Path directory = DriverDirectory.create(settings.parent(), settings.run());
        MediaDriverProcess driver = new MediaDriverProcess(directory, launch(directory, settings));
        driver.reader.start();
        driver.awaitReady(deadline);
        var _ = driver.process.onExit().thenAccept(_ -> driver.onExit(onDeath));
        return driver;
    }

    private static Process launch(Path directory, DriverSettings settings) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(JVM_FLAGS);
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(argument -> ARCHIVE_FLAGS.stream().anyMatch(argument::startsWith))
                .forEach(command::add);
        System.getProperties().stringPropertyNames().stream()
                .filter(name -> name.startsWith("aeron.")) // Aeron's own settings are the driver's
                .sorted()
                .map(name -> "-D%s=%s".formatted(name, System.getProperty(name)))
                .forEach(command::add);
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(MediaDriverMain.class.getName());
        command.add(directory.toString());
        command.add(Integer.toString(settings.termLengthBytes()));
        command.add(settings.idle().name());
        command.add(Integer.toString(settings.publications()));
        try {
            return new ProcessBuilder(command).redirectErrorStream(true).start();
        } catch (IOException e) {
            DriverDirectory.delete(directory);
            throw new DataPlaneException("cannot start a media driver process: " + e, e);
        }
    }

    private void readOutput() {
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
            String line = lines.readLine();
            while (line != null) {
                if (line.startsWith(MediaDriverMain.READY)) {
                    ready.complete(true);
                } else if (line.startsWith(MediaDriverMain.ENDS)) {
                    LOG.info(line.substring(MediaDriverMain.ENDS.length()));
                } else {
                    keep(line);
                }
                line = lines.readLine();
            }
        } catch (IOException e) {
            LOG.debug("the media driver's output ended", e);
        }
        ready.complete(false);
    }

    private void keep(String line) {
        LOG.debug("media driver: {}", line);
        synchronized (lastLines) {
            lastLines.add(line);
            if (lastLines.size() > LINES_KEPT) {
                lastLines.remove();
            }
        }
    }

    private String said() {
        synchronized (lastLines) {
            return lastLines.isEmpty() ? "it said nothing" : String.join("\n", lastLines);
        }
    }

    private void awaitReady(Duration deadline) {
        String problem;
        try {
            if (ready.get(deadline.toMillis(), TimeUnit.MILLISECONDS)) {
                return;
            }
            problem = "ended at once";
        } catch (TimeoutException e) {
            problem = "is not ready after " + deadline;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            problem = "was interrupted while starting";
        } catch (ExecutionException e) {
            throw new IllegalStateException("readiness never fails", e);
        }
        close();
        throw new DataPlaneException(
                "the media driver in %s %s: %s".formatted(directory, problem, said()));
    }

    private void onExit(Consumer<String> onDeath) {
        if (!closing) {
            int code = process.exitValue();
            onDeath.accept(
                    "the media driver (process %d) ended with code %d%s"
                            .formatted(
                                    process.pid(),
                                    code,
                                    code == ProcessHarm.KILLED ? " (killed)" : "; " + said()));
        }
    }

    @Override
    public Path directory() {
        return directory;
    }

    /** The driver's process. */
    public long pid() {
        return process.pid();
    }

    /** Ends the driver, by force if it does not listen, and removes its directory. Idempotent. */
    @Override
    public void close() {
        closing = true;
        try {
            process.getOutputStream().close();
            if (!process.waitFor(STOP_DEADLINE.toMillis(), TimeUnit.MILLISECONDS)) {
                process.destroyForcibly().waitFor(STOP_DEADLINE.toMillis(), TimeUnit.MILLISECONDS);
            }
            reader.join(STOP_DEADLINE); // its last words
        } catch (IOException e) {
            process.destroyForcibly();
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        DriverDirectory.delete(directory);
    }
}
