package dev.penstock.runtime.launch;

import dev.penstock.runtime.checkpoint.DurableFiles;
import java.io.IOException;
import java.io.Reader;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Properties;

/**
 * What one start of a run adds to its configuration. Written beside the resolved configuration, so
 * that a stage's own process starts from the same.
 *
 * @param runId unique among the runs of this machine; names shared memory and directories
 * @param directory of the run
 * @param resume checkpoint to continue from
 * @param init weights to start from, in Hugging Face's format
 * @param dump gradients to write, if any
 * @param evaluateOnly measure the held-out loss and stop
 */
public record RunOptions(
        String runId,
        Path directory,
        Optional<Path> resume,
        Optional<Path> init,
        Optional<DumpRequest> dump,
        boolean evaluateOnly) {
    private static final String FILE = "launch.properties";

    /** Gradients of one step, before clipping, as one safetensors file. */
    public record DumpRequest(long step, Path file) {}

    /** An identity for a run of this name that no other run of this machine has. */
    public static String newRunId(String name) {
        return "%s-%d-%x"
                .formatted(name, ProcessHandle.current().pid(), System.nanoTime() & 0xffffff);
    }

    /** Whether they were written into this directory. */
    public static boolean areIn(Path directory) {
        return Files.exists(directory.resolve(FILE));
    }

    /** How the run is asked to begin, wherever it is. */
    RunStart start() {
        return new RunStart(resume, init, dump, evaluateOnly);
    }

    /** Writes these options into their run's directory. */
    public void write() throws IOException {
        var properties = new Properties();
        properties.setProperty("runId", runId);
        resume.ifPresent(path -> properties.setProperty("resume", path.toString()));
        init.ifPresent(path -> properties.setProperty("init", path.toString()));
        dump.ifPresent(
                request -> {
                    properties.setProperty("dump.step", Long.toString(request.step()));
                    properties.setProperty("dump.file", request.file().toString());
                });
        properties.setProperty("evaluateOnly", Boolean.toString(evaluateOnly));
        var text = new StringWriter();
        properties.store(text, "how this run was started");
        DurableFiles.write(directory.resolve(FILE), text.toString());
    }

    /** Reads the options of the run in this directory. */
    public static RunOptions read(Path directory) {
        var properties = new Properties();
        Path file = directory.resolve(FILE);
        try (Reader reader = Files.newBufferedReader(file)) {
            properties.load(reader);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file, e);
        }
        Optional<Path> dumpFile = path(properties, "dump.file");
        return new RunOptions(
                properties.getProperty("runId"),
                directory,
                path(properties, "resume"),
                path(properties, "init"),
                dumpFile.map(
                        dump ->
                                new DumpRequest(
                                        Long.parseLong(properties.getProperty("dump.step")), dump)),
                Boolean.parseBoolean(properties.getProperty("evaluateOnly")));
    }

    /** The weights that the run in this directory was started from, if it was from any. */
    public static Optional<Path> initOf(Path directory) {
        return Files.exists(directory.resolve(FILE)) ? read(directory).init() : Optional.empty();
    }

    private static Optional<Path> path(Properties properties, String key) {
        return Optional.ofNullable(properties.getProperty(key)).map(Path::of);
    }
}
