package dev.penstock.runtime.starter;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.RunSection;
import dev.penstock.runtime.metrics.Quantities;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A folder with a text and all that its training needs. Nothing that exists is overwritten. */
public final class StarterFolder {
    /** The configuration's name. */
    public static final String CONFIGURATION = "train.conf";

    private static final String GUIDE = "README";
    private static final String SAMPLE = "sample.txt";
    private static final String ARGUMENT = "DIR";

    private final Path folder;
    private final Machine machine;

    /**
     * @param folder new, empty, or with text in it
     */
    public StarterFolder(Path folder, Machine machine) {
        this.folder = folder;
        this.machine = machine;
    }

    /**
     * What was written.
     *
     * @param run name of its runs
     * @param files of text
     * @param bytes of text
     * @param sample whether the text is a sample that was written, too
     */
    public record Written(
            Path configuration,
            String run,
            StarterSize size,
            int steps,
            int files,
            long bytes,
            boolean sample) {}

    /**
     * Writes a configuration and a guide, and a sample where there is no text.
     *
     * @param asked the size, if it is not to be chosen by text and machine
     * @throws ConfigException if anything is in the way; then nothing is written
     */
    public Written write(@Nullable StarterSize asked) throws IOException {
        refuse(inTheWay());
        OwnText text = Files.isDirectory(folder) ? OwnText.in(folder) : new OwnText("", 0, 0);
        boolean sample = text.files() == 0;
        if (sample) {
            refuse(otherFiles());
            text = new OwnText(OwnText.FOLDER, 1, sampleText().getBytes(UTF_8).length);
        }
        StarterSize size = asked != null ? asked : StarterSize.of(text.bytes(), machine);
        refuse(tooShort(text, size, sample));
        if (sample) {
            put(folder.resolve(OwnText.FOLDER).resolve(SAMPLE), sampleText());
        }
        String run = runName();
        put(folder.resolve(GUIDE), guide(run));
        put(folder.resolve(CONFIGURATION), configuration(text, size, run));
        return new Written(
                folder.resolve(CONFIGURATION),
                run,
                size,
                size.steps(text.bytes()),
                text.files(),
                text.bytes(),
                sample);
    }

    private static void refuse(List<Problem> problems) {
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
    }

    private List<Problem> inTheWay() {
        if (Files.exists(folder) && !Files.isDirectory(folder)) {
            return List.of(
                    Problem.atOption(
                            ARGUMENT, "a folder", folder + ", a file", "name a new folder"));
        }
        return Stream.of(CONFIGURATION, GUIDE)
                .map(folder::resolve)
                .filter(Files::exists)
                .map(
                        file ->
                                Problem.atOption(
                                        ARGUMENT,
                                        "a folder without " + file.getFileName(),
                                        file.toString(),
                                        "nothing is overwritten: move it away, or name another"
                                                + " folder"))
                .toList();
    }

    private List<Problem> otherFiles() throws IOException {
        List<String> others = new ArrayList<>();
        if (Files.isDirectory(folder)) {
            try (Stream<Path> list = Files.list(folder)) {
                list.map(file -> file.getFileName().toString())
                        .filter(name -> !name.startsWith(".") && !name.equals(OwnText.FOLDER))
                        .sorted()
                        .forEach(others::add);
            }
            Path texts = folder.resolve(OwnText.FOLDER);
            if (Files.exists(texts) && !isEmpty(texts)) {
                others.add(OwnText.FOLDER);
            }
        }
        return others.isEmpty()
                ? List.of()
                : List.of(
                        Problem.atOption(
                                ARGUMENT,
                                "a new or empty folder, or one with text (.txt, .md, or .gz of"
                                        + " them) in it or in its folder text",
                                "%s with %s".formatted(folder, shown(others)),
                                "name another folder; a configuration reads other files with"
                                        + " data.format"));
    }

    private static boolean isEmpty(Path texts) throws IOException {
        if (!Files.isDirectory(texts)) {
            return false;
        }
        try (Stream<Path> list = Files.list(texts)) {
            return list.allMatch(file -> file.getFileName().toString().startsWith("."));
        }
    }

    private static String shown(List<String> names) {
        int most = 3;
        return String.join(", ", names.subList(0, Math.min(most, names.size())))
                + (names.size() > most ? " and %d others".formatted(names.size() - most) : "");
    }

    private List<Problem> tooShort(OwnText text, StarterSize size, boolean sample) {
        if (text.bytes() >= size.leastBytes()) {
            return List.of();
        }
        boolean smaller = text.bytes() >= StarterSize.TINY.leastBytes();
        return List.of(
                Problem.atOption(
                        smaller ? "--size" : ARGUMENT,
                        "at least %,d bytes of text for a %s model"
                                .formatted(size.leastBytes(), size),
                        "%,d in %s".formatted(text.bytes(), sample ? "the sample" : folder),
                        smaller ? "try a smaller size" : "add text, or name a new folder"));
    }

    private String runName() {
        Path name = folder.toAbsolutePath().normalize().getFileName();
        return RunSection.fileName(name == null ? "mine" : name.toString());
    }

    private static void put(Path file, String text) throws IOException {
        Files.createDirectories(Objects.requireNonNull(file.getParent()));
        Files.writeString(file, text, StandardOpenOption.CREATE_NEW);
    }

    private static String sampleText() throws IOException {
        try (InputStream in = StarterFolder.class.getResourceAsStream(SAMPLE)) {
            return new String(
                    Optional.ofNullable(in)
                            .orElseThrow(() -> new IllegalStateException("no " + SAMPLE))
                            .readAllBytes(),
                    UTF_8);
        }
    }

    private static String guide(String run) {
        return """
        A model of your own, trained by Penstock

        train.conf says what is trained and how; its comments explain it. Change what you like, and
        ask for what is wrong with it: penstock config check train.conf

        In this folder:

          penstock train train.conf                           learns; Ctrl-C saves, --resume goes on
          penstock generate runs/%1$s-1 --prompt "The "       writes as it has learned to
          penstock serve runs/%1$s-1                          answers in OpenAI's protocol

        Sizes fit the text that was here. With much more of it, delete train.conf and README and call
        penstock init again.
        """
                .formatted(run);
    }

    private String configuration(OwnText text, StarterSize size, String run) {
        int steps = size.steps(text.bytes());
        boolean divided = machine.cores() > 1;
        return """
        # A %1$s model learns your text, byte by byte:
        #
        #   penstock train %2$s
        #
        # Keys that are missing here have defaults; penstock config keys lists every key. Any key can
        # be changed for one run: penstock train %2$s --set run.steps=50
        # Other sizes are written by penstock init --size tiny, small, medium or large.

        run {
          name = "%3$s"
          seed = 42                  # same seed, same configuration, same machine: the same bits
          steps = %4$-18s # they read the text %5$s
        }

        model {                      # %6$s parameters
          context = %7$-16s # tokens that the model sees at once
          width = %8$-18s # numbers that stand for a token: more learn more, and take longer
          layers = %9$s
          heads = %10$s
        }

        data {
          source = "%11$s"%12$s
          tokenizer = bytes          # 256 tokens: every byte is one
        }

        batch {
          sequences = %13$-14s # one step reads %13$s x %7$s bytes ..
          micro-batches = 8          # .. which pass through the pipeline in 8 parts
        }

        pipeline {
          stages = %14$-17s # %15$s
        }

        schedule {
          kind = 1f1b                # after a short warm-up each stage alternates forward and backward
        }

        optimizer {
          learning-rate = %16$-10s # smaller if the loss jumps up and down
          warmup-steps = 20          # it rises in these, and falls to the end
        }

        evaluation {
          every = %17$-18s # the loss on held-out text, which the model never trains on
          batches = 4
        }

        checkpoint {
          every = %18$-18s # steps; a run that was stopped goes on with --resume
        }
        """
                .formatted(
                        size,
                        CONFIGURATION,
                        run,
                        steps,
                        passes(size.passes(text.bytes())),
                        Quantities.count(size.parameters()),
                        size.context(),
                        size.width(),
                        size.layers(),
                        size.heads(),
                        text.source(),
                        " ".repeat(Math.max(1, 16 - text.source().length()))
                                + "# relative to this file: "
                                + amount(text),
                        size.sequences(),
                        divided ? 2 : 1,
                        divided
                                ? "half of the layers each, like two people at an assembly line"
                                : "all layers in one: this machine has one core",
                        size.learningRate(),
                        steps / 10,
                        steps / 5);
    }

    private static String passes(double passes) {
        return passes < 1.5
                ? String.format(Locale.ROOT, "%.1f times", passes)
                : String.format(Locale.ROOT, "about %.0f times", passes);
    }

    private static String amount(OwnText text) {
        return "%s of text in %d %s"
                .formatted(
                        Quantities.bytes(text.bytes()),
                        text.files(),
                        text.files() == 1 ? "file" : "files");
    }
}
