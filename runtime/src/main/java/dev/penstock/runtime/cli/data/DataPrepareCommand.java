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
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import dev.penstock.runtime.training.RunFailedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
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
            description = "The folder for the tokens; new, empty, or of the same preparation.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path output;

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
