package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.RunRefusedException;
import dev.penstock.runtime.config.reading.ConfigText;
import dev.penstock.runtime.config.run.RunConfig;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Properties;

/**
 * A run on its way to a seed: everything but the data and the weights, whose paths all nodes must
 * see.
 *
 * @param configuration resolved: every key written out, paths absolute
 * @param order the text of {@code schedule.file}
 * @param orderFile its file name, which says its form
 * @param init weights to start from
 * @param resume whether to continue with the newest run of the configuration's name
 * @param modelOfRun whether the model is what that run says: its folder is not where the
 *     configuration looks for it, and what that says of the model is not to be used
 */
public record Submission(
        String name,
        String configuration,
        Optional<String> order,
        String orderFile,
        Optional<Path> init,
        boolean resume,
        boolean modelOfRun) {

    /** With the model that the configuration says. */
    public Submission(
            String name,
            String configuration,
            Optional<String> order,
            String orderFile,
            Optional<Path> init,
            boolean resume) {
        this(name, configuration, order, orderFile, init, resume, false);
    }

    /** The same with the model of the run that goes on. */
    public Submission withModelOfRun() {
        return new Submission(name, configuration, order, orderFile, init, resume, true);
    }

    /** Of a configuration that was read here. */
    public static Submission of(RunConfig config, Optional<Path> init, boolean resume) {
        Optional<Path> order = config.schedule().file();
        return new Submission(
                config.run().name(),
                config.resolved(),
                order.map(Submission::read),
                order.map(file -> String.valueOf(file.getFileName())).orElse(""),
                init.map(Path::toAbsolutePath),
                resume);
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    /** As it travels; {@link #parse} is the inverse. */
    public String text() {
        var properties = new Properties();
        properties.setProperty("name", name);
        properties.setProperty("configuration", configuration);
        order.ifPresent(text -> properties.setProperty("order", text));
        properties.setProperty("order-file", orderFile);
        init.ifPresent(path -> properties.setProperty("init", path.toString()));
        properties.setProperty("resume", Boolean.toString(resume));
        properties.setProperty("model-of-run", Boolean.toString(modelOfRun));
        var text = new StringWriter();
        try {
            properties.store(text, "a run");
        } catch (IOException e) {
            throw new UncheckedIOException("a text takes everything", e);
        }
        return text.toString();
    }

    /**
     * Reads what came from a client.
     *
     * @throws RunRefusedException if it is no submission
     */
    static Submission parse(String text) {
        var properties = new Properties();
        try {
            properties.load(new StringReader(text));
        } catch (IOException | IllegalArgumentException e) {
            throw new RunRefusedException("expected a submission, got: " + e.getMessage(), e);
        }
        String name = properties.getProperty("name", "");
        String configuration = properties.getProperty("configuration", "");
        if (name.isBlank() || configuration.isBlank()) {
            throw new RunRefusedException(
                    "expected a submission with a name and a configuration, got neither");
        }
        if (!ConfigText.isSelfContained(configuration)) {
            throw new RunRefusedException(
                    "expected a configuration that is complete, got one with include or ${..}: these would be read from the seed's own files and environment");
        }
        return new Submission(
                name,
                configuration,
                Optional.ofNullable(properties.getProperty("order")),
                fileName(properties.getProperty("order-file", "order.txt")),
                Optional.ofNullable(properties.getProperty("init")).map(Submission::path),
                Boolean.parseBoolean(properties.getProperty("resume")),
                Boolean.parseBoolean(properties.getProperty("model-of-run")));
    }

    /** It becomes part of a path here, so it is a name and nothing else. */
    private static String fileName(String text) {
        Path name = path(text).getFileName();
        if (name == null || name.toString().equals("..") || name.toString().equals(".")) {
            throw new RunRefusedException(
                    "expected the name of the order's file, got \"%s\"".formatted(text));
        }
        return name.toString();
    }

    private static Path path(String text) {
        try {
            return Path.of(text);
        } catch (InvalidPathException e) {
            throw new RunRefusedException("expected a path, got: " + e.getMessage(), e);
        }
    }
}
