package dev.penstock.runtime.cli;

import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;

/** A training run of a tiny model, described in a file and started by the train command. */
public final class Training {
    private static final List<String> WORDS =
            List.of("valve", "river", "turbine", "gate", "flows", "opens", "under", "the", "stage");

    private final Path configuration;
    private final Path directory;
    private final List<String> settings = new ArrayList<>();
    private final List<String> options = new ArrayList<>();
    private Optional<Path> weights = Optional.empty();

    private Training(Path folder, String text) {
        configuration = folder.resolve("tiny.conf");
        directory = folder.resolve("run");
        write(configuration, text);
    }

    private Training(Training other) {
        configuration = other.configuration;
        directory = other.directory;
        weights = other.weights;
        settings.addAll(other.settings);
        options.addAll(other.options);
    }

    /**
     * The golden run in one stage, without clipping: prepared tokens, weights from a file, a
     * constant learning rate.
     *
     * @param folder for the configuration and the run, one folder for each run
     */
    public static Training golden(Path folder, boolean tied) {
        String variant = tied ? "tied" : "untied";
        return new Training(
                        folder,
                        """
                        run.steps = 20
                        model { context = 16, width = 32, layers = 2, heads = 4, vocabulary = 64
                                tied = %s }
                        data { source = "%s", format = tokens }
                        batch { sequences = 4, micro-batches = 4 }
                        pipeline.stages = 1
                        optimizer { learning-rate = 0.01, min-learning-rate = 0.01, warmup-steps = 0
                                    weight-decay = 0.1, decay-all = true, clip-norm = 0 }
                        device { threads = 1, reduction-block = 8 }
                        checkpoint.every = 0
                        recovery.spares = 0
                        data-plane.term-length = 1 MiB
                        report { dashboard = false, sample = false }
                        """
                                .formatted(tied, golden("tokens.safetensors")))
                .init(golden(variant + ".init.safetensors"));
    }

    /** Twelve steps on a small text from random weights, with evaluations and checkpoints. */
    public static Training onText(Path folder) {
        write(folder.resolve("text.txt"), text(20_000));
        return new Training(
                folder,
                """
                run { steps = 12, seed = 7 }
                model { context = 32, width = 32, layers = 2, heads = 2 }
                data.source = text.txt
                batch { sequences = 4, micro-batches = 4 }
                pipeline.stages = 2
                optimizer { learning-rate = 5e-3, warmup-steps = 3 }
                device { threads = 1, reduction-block = 16 }
                evaluation { every = 3, batches = 2 }
                checkpoint { every = 4, retain = 3 }
                recovery.spares = 0
                data-plane.term-length = 1 MiB
                report { dashboard = false, sample = false }
                """);
    }

    /** Sentences drawn from few words, so that a tiny model learns something of them. */
    public static String text(int characters) {
        Random random = new Random(3);
        StringBuilder text = new StringBuilder();
        while (text.length() < characters) {
            text.append(WORDS.get(random.nextInt(WORDS.size())));
            text.append(random.nextInt(6) == 0 ? ".\n" : " ");
        }
        return text.toString();
    }

    /** A file of the golden run. */
    public static Path golden(String name) {
        try {
            return Path.of(
                    Objects.requireNonNull(Training.class.getResource("/golden/" + name)).toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The same training, which can be changed without changing this one. */
    public Training copy() {
        return new Training(this);
    }

    /** Overrides a key, as {@code --set} does. */
    public Training set(String... more) {
        settings.addAll(List.of(more));
        return this;
    }

    /** Adds options of the train command. */
    public Training option(String... more) {
        options.addAll(List.of(more));
        return this;
    }

    /** Starts from these weights. */
    public Training init(Path file) {
        weights = Optional.of(file);
        return this;
    }

    /** Goes on with the run that was started before. */
    public Training resume() {
        weights = Optional.empty();
        return option("--resume");
    }

    /** Whether it continues with the run that was started before. */
    public boolean isResumed() {
        return options.contains("--resume");
    }

    /** The weights that it starts from, if it does not draw them. */
    public Optional<Path> weights() {
        return weights;
    }

    /** Where the run's files are. */
    public Path directory() {
        return directory;
    }

    /** The configuration file. */
    public Path configuration() {
        return configuration;
    }

    /** Keys that {@link #set} overrode. */
    public List<String> settings() {
        return List.copyOf(settings);
    }

    /** The arguments of the program. */
    public List<String> arguments() {
        List<String> arguments = new ArrayList<>();
        arguments.addAll(List.of("train", configuration.toString()));
        arguments.addAll(List.of("--run-dir", directory.toString()));
        settings.forEach(setting -> arguments.addAll(List.of("--set", setting)));
        weights.ifPresent(file -> arguments.addAll(List.of("--init", file.toString())));
        arguments.addAll(options);
        return arguments;
    }

    /** Runs inside this process, whatever comes of it. */
    public Trained run() {
        try {
            ForkedJava.asLaunched();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Cli cli = Cli.run(arguments().toArray(String[]::new));
        return new Trained(directory, cli.exitCode(), cli.out(), cli.err());
    }

    /** Runs inside this process to a good end. */
    public Trained complete() {
        Trained trained = run();
        if (trained.exitCode() != ExitCode.OK) {
            throw new AssertionError(
                    "%s ended with %d: %s".formatted(this, trained.exitCode(), trained.err()));
        }
        return trained;
    }

    @Override
    public String toString() {
        return arguments().stream().collect(Collectors.joining(" "));
    }

    private static void write(Path file, String text) {
        try {
            Files.createDirectories(Objects.requireNonNull(file.getParent()));
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
