package dev.penstock.runtime.cli.data;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.TextArguments;
import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.cli.command.WorkBar;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.data.Corpus;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataPreparation;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.data.labelled.LabelledFile;
import dev.penstock.runtime.data.labelled.LabelledLines;
import dev.penstock.runtime.data.labelled.LabelledRow;
import dev.penstock.runtime.data.labelled.PairEncoder;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import dev.penstock.runtime.training.RunFailedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Encodes a corpus into shards. */
@Command(
        name = "prepare",
        description = {
            "Encodes texts once, into files that runs map into their memory.",
            "A run reads them with data.format = tokens; it has the same tokens as one that reads"
                    + " the texts. The same command continues after an interruption, and does"
                    + " nothing where all is done."
        },
        footer = {
            "  penstock data prepare --tokenizer gpt2 --output tokens my-texts",
            "  penstock train my.conf --set data.source=tokens \\",
            "      --set data.format=tokens --set data.tokenizer=gpt2",
            "  penstock data prepare --tokenizer my-bert --label label \\",
            "      --texts premise,hypothesis --output pairs.safetensors train.jsonl",
        })
final class DataPrepareCommand extends PenstockCommand {
    private static final int MOST_SHARD = 1 << 30;

    /**
     * The answer for programs.
     *
     * @param resumed tokens that an earlier, interrupted preparation had made
     */
    record Answer(
            String output,
            String tokenizer,
            long tokens,
            long documents,
            int shards,
            int tokenBytes,
            long bytes,
            long resumed) {}

    @Option(
            names = "--tokenizer",
            required = true,
            paramLabel = "NAME|PATH",
            description =
                    "bytes, gpt2, or a folder with tokenizer.json or vocab.json and merges.txt.")
    private String tokenizer = "";

    @Option(
            names = "--output",
            required = true,
            paramLabel = "DIR",
            description =
                    "The folder for the tokens; new, empty, or of the same preparation. With"
                            + " --label a new file, such as pairs.safetensors.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path output;

    @Option(
            names = "--label",
            paramLabel = "MEMBER",
            description =
                    "For a classifier: member of the JSON lines that is the label. The output is"
                            + " one file then, of texts with labels.")
    private @Nullable String label;

    @Option(
            names = "--texts",
            paramLabel = "MEMBER",
            split = ",",
            description =
                    "With --label: members that are the text, or the two texts, such as"
                            + " premise,hypothesis (default: text).")
    private List<String> members = new ArrayList<>();

    @Option(
            names = "--context",
            paramLabel = "N",
            defaultValue = "512",
            description =
                    "With --label: tokens of a row; longer texts lose their ends (default:"
                            + " ${DEFAULT-VALUE}).")
    @WholeNumber(from = 4)
    private int context;

    @Mixin private TextArguments texts = new TextArguments();

    @Option(
            names = "--shard-tokens",
            paramLabel = "N",
            defaultValue = "67108864",
            description =
                    "Tokens of a file; an interruption loses at most these (default:"
                            + " ${DEFAULT-VALUE}).")
    @WholeNumber(from = 1, to = MOST_SHARD)
    private int shardTokens;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        List<Problem> problems = problemsOfOptions();
        Optional<Tokenizer> opened = open(problems);
        Optional<Corpus> found = find(problems);
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        Corpus corpus = found.orElseThrow();
        if (label != null) {
            return prepareLabelled(corpus, opened.orElseThrow(), label);
        }
        try (WorkBar bar = WorkBar.ofBytes("tokens", corpus.bytes())) {
            var preparation =
                    new DataPreparation(corpus, opened.orElseThrow(), output, shardTokens);
            print(preparation.prepare(texts.threads(), bar));
            return ExitCode.OK;
        } catch (DataException e) {
            throw new ConfigException(TextArguments.told(e, true));
        } catch (IOException e) {
            throw new RunFailedException(
                    "cannot write into %s: %s; the same command continues where this one ended"
                            .formatted(output, e.getMessage()));
        }
    }

    private int prepareLabelled(Corpus corpus, Tokenizer opened, String member) {
        PairEncoder encoder = PairEncoder.of(opened);
        var lines = new LabelledLines(members.isEmpty() ? List.of("text") : members, member);
        List<LabelledLines.Line> read = new ArrayList<>();
        List<Problem> problems = new ArrayList<>();
        for (Path file : corpus.files()) {
            try {
                read.addAll(lines.read(file, true));
            } catch (DataException e) {
                e.problems().forEach(problem -> problems.add(told(problem)));
            }
        }
        List<String> labels =
                read.stream().map(LabelledLines.Line::label).distinct().sorted().toList();
        if (labels.size() < 2 && problems.isEmpty()) {
            problems.add(
                    Problem.atOption(
                            "--label", "two labels or more", labels.toString(), "add lines"));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        List<LabelledRow> rows =
                read.stream()
                        .map(
                                line ->
                                        encoder.encode(
                                                line.texts(),
                                                labels.indexOf(line.label()),
                                                context))
                        .toList();
        try {
            new LabelledFile(labels, rows).write(output);
        } catch (IOException e) {
            throw new RunFailedException("cannot write %s: %s".formatted(output, e.getMessage()));
        }
        print(new LabelledAnswer(output.toString(), tokenizer, rows.size(), labels, encoder));
        return ExitCode.OK;
    }

    private static Problem told(DataProblem problem) {
        String option =
                switch (problem.key()) {
                    case "data.field" -> "--texts";
                    case "label" -> "--label";
                    default -> "FILE";
                };
        return Problem.atOption(option, problem.expected(), problem.got(), problem.advice());
    }

    /** The answer for programs, of texts with labels. */
    record LabelledAnswer(
            String output, String tokenizer, int texts, List<String> labels, int vocabulary) {
        LabelledAnswer(
                String output,
                String tokenizer,
                int texts,
                List<String> labels,
                PairEncoder encoder) {
            this(output, tokenizer, texts, labels, encoder.vocabulary());
        }
    }

    private void print(LabelledAnswer answer) {
        if (json) {
            printJson(answer);
            return;
        }
        out().printf("%s: %,d texts, labels %s%n", output, answer.texts(), answer.labels());
        out().printf(
                        "use them with data { source = \"%s\", format = tokens, loss = labels, tokenizer = \"%s\" }%n",
                        output, tokenizer);
        out().printf(
                        "and model { labels = %s, vocabulary = %d or more }%n",
                        answer.labels(), answer.vocabulary());
    }

    private Optional<Tokenizer> open(List<Problem> problems) {
        try {
            return Optional.of(Tokenizer.open(tokenizer));
        } catch (TokenizerFileException e) {
            problems.add(Problem.atOption("--tokenizer", "", String.valueOf(e.getMessage()), ""));
            return Optional.empty();
        }
    }

    private Optional<Corpus> find(List<Problem> problems) {
        try {
            return Optional.of(texts.corpus());
        } catch (DataException e) {
            problems.addAll(TextArguments.told(e, true));
            return Optional.empty();
        }
    }

    private List<Problem> problemsOfOptions() {
        List<Problem> problems = new ArrayList<>(texts.problems());
        if (shardTokens < 1 || shardTokens > MOST_SHARD) {
            problems.add(
                    Problem.atOption("--shard-tokens", "1 to " + MOST_SHARD, "" + shardTokens, ""));
        }
        if (members.size() > 2 || (label == null && !members.isEmpty())) {
            problems.add(
                    Problem.atOption(
                            "--texts",
                            "one member or two, with --label",
                            String.join(",", members) + (label == null ? ", without it" : ""),
                            "such as --texts premise,hypothesis --label label"));
        }
        if (label != null) {
            if (Files.exists(output)) {
                problems.add(
                        Problem.atOption("--output", "a new file", output + ", which exists", ""));
            }
            return problems;
        }
        if (Files.exists(output) && !Files.isDirectory(output)) {
            problems.add(Problem.atOption("--output", "a folder", output + ", a file", ""));
        }
        return problems;
    }

    private void print(DataPreparation.Result result) {
        if (json) {
            printJson(
                    new Answer(
                            output.toString(),
                            tokenizer,
                            result.tokens(),
                            result.documents(),
                            result.shards(),
                            result.tokenBytes(),
                            result.bytes(),
                            result.resumed()));
            return;
        }
        if (result.resumed() > 0) {
            out().printf("%,d tokens were there already%n", result.resumed());
        }
        out().printf(
                        "%s: %,d tokens of %,d documents, %d bytes each, in %d %s%n",
                        output,
                        result.tokens(),
                        result.documents(),
                        result.tokenBytes(),
                        result.shards(),
                        result.shards() == 1 ? "file" : "files");
        out().printf(
                        "use them with data { source = \"%s\", format = tokens, tokenizer = \"%s\" }%n",
                        output, tokenizer);
    }
}
