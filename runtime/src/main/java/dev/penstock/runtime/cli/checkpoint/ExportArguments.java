package dev.penstock.runtime.cli.checkpoint;

import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.checkpoint.WeightsExport;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.gguf.GgufModel;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import dev.penstock.runtime.vocabulary.Vocabulary;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** How weights are written for other programs. */
final class ExportArguments {
    /** What a tokenizer consists of in a Hugging Face folder. */
    private static final List<String> COPIED =
            List.of(
                    "tokenizer.json",
                    "tokenizer_config.json",
                    "special_tokens_map.json",
                    "added_tokens.json",
                    "vocab.json",
                    "merges.txt",
                    "generation_config.json");

    /** The largest tokenizers of today have 40 MB. */
    private static final long MOST_TOKENIZER_BYTES = 128 << 20;

    /** Megatron pads to 128 times the tensor shards. */
    private static final int MOST_PADDING = 1024;

    private static final Pattern SIZE =
            Pattern.compile("(\\d{1,9}(?:\\.\\d{1,3})?) ?(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)");

    /** Weights alone: the way out where nobody has a tokenizer. */
    private static final String NONE = "none";

    private static final String TOKENIZERS = "%s, or a folder with a tokenizer.json";

    /** Types of elements. */
    enum Type {
        f32(StoredType.F32, GgufModel.Form.F32),
        bf16(StoredType.BF16, GgufModel.Form.BF16),
        f16(StoredType.F16, GgufModel.Form.F16),
        q8_0(null, GgufModel.Form.Q8_0);

        private final @Nullable StoredType stored;
        private final GgufModel.Form gguf;

        Type(@Nullable StoredType stored, GgufModel.Form gguf) {
            this.stored = stored;
            this.gguf = gguf;
        }
    }

    @Option(
            names = "--type",
            paramLabel = "TYPE",
            description =
                    "Type of the elements: ${COMPLETION-CANDIDATES}. Values are rounded to the"
                            + " nearest, ties to even; one beyond the range of f16 is refused."
                            + " q8_0 is for GGUF alone. Default: as they are stored, for a"
                            + " checkpoint and for GGUF f32.")
    private @Nullable Type type;

    @Option(
            names = "--part-size",
            paramLabel = "SIZE",
            description =
                    "Most weights in one file, such as 2GB; more go to model-00001-of-00003.safetensors"
                            + " and so on with an index. Default: one file.")
    private @Nullable String partSize;

    @Option(
            names = "--tokenizer",
            paramLabel = "NAME|FOLDER",
            description =
                    "Tokenizer that is written beside: bytes, gpt2, or a folder with a"
                            + " tokenizer.json; or none. Default: the run's, or that of the"
                            + " weights' folder.")
    private @Nullable String tokenizer;

    /**
     * What is wrong with these options, whatever the model.
     *
     * @param gguf whether GGUF is written, else safetensors
     */
    List<Problem> problems(boolean gguf) {
        List<Problem> problems = new ArrayList<>();
        if (!gguf && type == Type.q8_0) {
            problems.add(
                    Problem.atOption(
                            "--type",
                            "f32, bf16 or f16 for safetensors",
                            "q8_0",
                            "try a name that ends with .gguf"));
        }
        if (gguf && partSize != null) {
            problems.add(
                    Problem.atOption("--part-size", "", "a GGUF file is one", "try safetensors"));
        } else if (partBytes().isEmpty()) {
            problems.add(
                    Problem.atOption(
                            "--part-size", "a size such as 500MB or 2GiB", "" + partSize, ""));
        }
        if (gguf && NONE.equals(tokenizer)) {
            problems.add(
                    Problem.atOption("--tokenizer", "", "a GGUF file has one", "try safetensors"));
        } else if (tokenizer != null
                && !tokenizer.equals(NONE)
                && !Tokenizer.names().contains(tokenizer)
                && !Files.exists(Path.of(tokenizer))) {
            problems.add(
                    Problem.atOption("--tokenizer", TOKENIZERS.formatted(names()), tokenizer, ""));
        }
        return problems;
    }

    private static String names() {
        return String.join(", ", Tokenizer.names());
    }

    /** Returns what is wanted of safetensors, once there are no {@link #problems}. */
    WeightsExport.Form form() {
        return new WeightsExport.Form(
                Optional.ofNullable(type).map(t -> t.stored), partBytes().orElse(Long.MAX_VALUE));
    }

    /** Returns what is wanted of GGUF, once there are no {@link #problems}. */
    GgufModel.Form ggufForm() {
        return type == null ? GgufModel.Form.F32 : type.gguf;
    }

    /** Returns the tokenizer that goes with a model. */
    Vocabulary vocabulary(TrainedModel model) {
        return name(model)
                .map(ExportArguments::named)
                .orElseThrow(() -> unknown(model, ", or bytes or gpt2"));
    }

    private static BadInputException unknown(TrainedModel model, String others) {
        return new BadInputException(
                "--tokenizer: expected the tokenizer of a vocabulary of %,d, as none lies beside the weights, got none; give the folder of its files%s"
                        .formatted(model.config().shape().vocabulary(), others));
    }

    /**
     * Returns the files of the tokenizer for a Hugging Face folder, by name: copies where it has
     * some, else those that stand for our own.
     */
    Map<String, String> tokenizerFiles(TrainedModel model) {
        if (NONE.equals(tokenizer)) {
            return Map.of();
        }
        Optional<String> name = name(model);
        if (name.isEmpty() && model.checkpoint().isPresent()) {
            throw unknown(model, ", bytes, gpt2 or none");
        }
        return files(model, name.orElseGet(() -> model.tensors().path().toString()));
    }

    /**
     * Returns the files of the tokenizer that a run converted from a model keeps, by name; none
     * where none is known, or the model's vocabulary tells it.
     *
     * @param notes receives one if there are none because the run's has been moved
     */
    Map<String, String> keptFiles(TrainedModel model, Consumer<String> notes) {
        if (NONE.equals(tokenizer)) {
            return Map.of();
        }
        Optional<String> name;
        try {
            name = name(model);
        } catch (BadInputException e) {
            notes.accept("penstock: the tokenizer is not kept: " + e.getMessage());
            return Map.of();
        }
        return name.isEmpty() || name.equals(fitting(model.config().shape().vocabulary()))
                ? Map.of()
                : files(model, name.get());
    }

    private Map<String, String> files(TrainedModel model, String name) {
        if (tokenizer != null) {
            requireFit(model, name);
        }
        if (Tokenizer.names().contains(name)) {
            return named(name).files();
        }
        Map<String, String> copies = copies(folderOf(Path.of(name)));
        if (tokenizer != null && copies.isEmpty()) {
            throw noTokenizer(tokenizer);
        }
        return copies;
    }

    /** A model has no rows for the last tokens of a larger tokenizer. */
    private static void requireFit(TrainedModel model, String name) {
        int rows = model.config().shape().vocabulary();
        int tokens;
        try {
            tokens =
                    Tokenizer.vocabularyOf(
                            Tokenizer.names().contains(name)
                                    ? name
                                    : folderOf(Path.of(name)).toString());
        } catch (TokenizerFileException e) {
            return; // of a kind that only others read: its files are copied as they are
        }
        if (tokens > rows) {
            throw new BadInputException(
                    "--tokenizer: expected one of at most %,d tokens, the model's vocabulary, got %,d of %s"
                            .formatted(rows, tokens, name));
        }
    }

    private Optional<String> name(TrainedModel model) {
        if (tokenizer != null) {
            return Optional.of(tokenizer);
        }
        int vocabulary = model.config().shape().vocabulary();
        return model.tokenizer()
                .or(() -> model.tokenizerOfRun().filter(own -> isPadded(own, vocabulary)))
                .or(() -> model.checkpoint().flatMap(_ -> fitting(vocabulary)));
    }

    private static Path folderOf(Path file) {
        return Files.isDirectory(file) ? file : DurableFiles.folderOf(file);
    }

    private static Vocabulary named(String name) {
        return Tokenizer.names().contains(name)
                ? Vocabulary.of(Tokenizer.named(name))
                : Vocabulary.in(folderOf(Path.of(name))).orElseThrow(() -> noTokenizer(name));
    }

    private static BadInputException noTokenizer(String name) {
        return new BadInputException(
                "--tokenizer: expected %s, got %s".formatted(TOKENIZERS.formatted(names()), name));
    }

    /**
     * Returns which of our own tokenizers a vocabulary tells of. That of bytes is small enough to
     * go into every other one, so it has to be exact.
     */
    private static Optional<String> fitting(int vocabulary) {
        return Tokenizer.names().stream()
                .filter(
                        name ->
                                name.equals("bytes")
                                        ? vocabulary == Tokenizer.vocabularyOf(name)
                                        : isPadded(name, vocabulary))
                .findFirst();
    }

    /** Whether a vocabulary is that of one of our own tokenizers, with a few rows more. */
    private static boolean isPadded(String name, int vocabulary) {
        if (!Tokenizer.names().contains(name)) {
            return false;
        }
        int more = vocabulary - Tokenizer.vocabularyOf(name);
        return more >= 0 && more <= MOST_PADDING;
    }

    private static Map<String, String> copies(Path folder) {
        Map<String, String> files = new LinkedHashMap<>();
        for (String name : COPIED) {
            Path file = folder.resolve(name);
            if (Files.isRegularFile(file)) {
                files.put(name, read(file));
            }
        }
        return files;
    }

    private static String read(Path file) {
        try {
            if (Files.size(file) > MOST_TOKENIZER_BYTES) {
                throw new StoredFileException(
                        file,
                        "expected a tokenizer's file of at most %d MiB, got %,d bytes"
                                .formatted(MOST_TOKENIZER_BYTES >> 20, Files.size(file)));
            }
            return Files.readString(file, StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw StoredFileException.of(file, "read the tokenizer", e);
        }
    }

    /** The most bytes of a file; empty where what was given is no size. */
    private OptionalLong partBytes() {
        if (partSize == null) {
            return OptionalLong.of(Long.MAX_VALUE);
        }
        Matcher size = SIZE.matcher(partSize);
        if (size.matches()) {
            BigDecimal bytes = new BigDecimal(size.group(1)).multiply(unit(size.group(2)));
            if (bytes.compareTo(BigDecimal.ONE) >= 0) {
                return OptionalLong.of(
                        bytes.min(BigDecimal.valueOf(Long.MAX_VALUE))
                                .setScale(0, RoundingMode.FLOOR)
                                .longValueExact());
            }
        }
        return OptionalLong.empty();
    }

    private static BigDecimal unit(String name) {
        int power = "BKMGT".indexOf(name.charAt(0));
        return BigDecimal.valueOf(name.contains("i") ? 1024 : 1000).pow(power);
    }
}
