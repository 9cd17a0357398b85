package dev.penstock.runtime.cli.tokenizer;

import dev.penstock.runtime.checkpoint.TextsAside;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.TextArguments;
import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.cli.command.WorkBar;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.data.Corpus;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.BytePairTrainer;
import dev.penstock.runtime.tokenizer.TrainedPairs;
import dev.penstock.runtime.tokenizer.WordCounts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Learns a byte-level byte-pair encoding. */
@Command(
        name = "train",
        description = {
            "Learns a byte-level byte-pair encoding of texts, as GPT-2's was.",
            "It writes vocab.json and merges.txt, and the same as a tokenizer.json that Hugging"
                    + " Face's library loads. Of pairs that are equally frequent, the one whose"
                    + " tokens were learned earlier is merged first, so the same texts give the"
                    + " same files. The last token, <|endoftext|>, ends a text."
        },
        footer = {
            "  penstock tokenizer train --vocabulary 8000 --output words my-texts",
            "  penstock train my.conf --set data.tokenizer=words",
        })
final class TokenizerTrainCommand extends PenstockCommand {
    private static final int LEAST = 257;
    private static final int MOST = 1_000_000;

    /** The answer for programs. */
    record Answer(String output, int vocabulary, int words) {}

    @Option(
            names = "--vocabulary",
            required = true,
            paramLabel = "N",
            description = "Tokens that it may have, the 256 bytes and the end of a text included.")
    @WholeNumber(from = LEAST, to = MOST)
    private int vocabulary;

    @Option(
            names = "--output",
            required = true,
            paramLabel = "DIR",
            description = "The folder for its files.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path output;

    @Mixin private TextArguments texts = new TextArguments();

    @Option(names = "--force", description = "Replace files that are there.")
    private boolean force;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        List<Problem> problems = problemsOfOptions();
        Optional<Corpus> corpus = find(problems);
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        WordCounts words = count(corpus.orElseThrow());
        TrainedPairs trained;
        try (WorkBar bar = WorkBar.ofPieces("tokens", vocabulary)) {
            trained = BytePairTrainer.train(words, vocabulary, bar::accept);
        }
        write(trained);
        print(new Answer(output.toString(), trained.vocabulary(), words.different()));
        return ExitCode.OK;
    }

    private Optional<Corpus> find(List<Problem> problems) {
        try {
            return Optional.of(texts.corpus());
        } catch (DataException e) {
            problems.addAll(TextArguments.told(e, false));
            return Optional.empty();
        }
    }

    private WordCounts count(Corpus corpus) {
        WordCounts words = new WordCounts();
        try (WorkBar bar = WorkBar.ofBytes("words", corpus.bytes())) {
            corpus.encode(words, "a byte-pair encoding", texts.threads(), bar);
        } catch (DataException e) {
            throw new ConfigException(TextArguments.told(e, false));
        }
        if (words.different() == 0) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "FILE", "text in the files", "none", "check the files")));
        }
        return words;
    }

    /**
     * Replaces the files of another tokenizer. What makes a folder one goes first: it is never made
     * of files of both.
     */
    private void write(TrainedPairs trained) {
        try {
            Files.createDirectories(output);
            TextsAside texts = TextsAside.write(output, trained.texts());
            try {
                for (String file : TrainedPairs.decisiveFiles()) {
                    Files.deleteIfExists(output.resolve(file));
                }
                texts.publish();
            } finally {
                texts.discard();
            }
        } catch (IOException e) {
            throw StoredFileException.of(output, "write the tokenizer", e);
        }
    }

    private List<Problem> problemsOfOptions() {
        List<Problem> problems = new ArrayList<>(texts.problems());
        if (vocabulary < LEAST || vocabulary > MOST) {
            problems.add(
                    Problem.atOption(
                            "--vocabulary",
                            "%d to %d".formatted(LEAST, MOST),
                            "" + vocabulary,
                            "the 256 bytes and the end of a text are tokens, too"));
        }
        List<String> there =
                TrainedPairs.files().stream()
                        .filter(file -> Files.exists(output.resolve(file)))
                        .toList();
        if (!force && !there.isEmpty() && !isUnfinished()) {
            problems.add(
                    Problem.atOption(
                            "--output",
                            "a folder without a tokenizer",
                            "%s with %s".formatted(output, String.join(", ", there)),
                            "try another folder, or --force to replace"));
        }
        return problems;
    }

    /**
     * Whether all that is there was left by a training that was killed: it writes only where it
     * may, and then the decisive files go first and come last.
     */
    private boolean isUnfinished() {
        List<String> decisive = TrainedPairs.decisiveFiles();
        return decisive.stream().anyMatch(file -> TextsAside.isLeft(output, file))
                && decisive.stream().anyMatch(file -> !Files.exists(output.resolve(file)));
    }

    private void print(Answer answer) {
        if (json) {
            printJson(answer);
            return;
        }
        if (answer.vocabulary() < vocabulary) {
            err().printf(
                            "penstock: only %,d tokens: no pair of them comes twice any more; more text gives more%n",
                            answer.vocabulary());
            err().flush();
        }
        out().printf(
                        "%s: %,d tokens of %,d different words; use it with data.tokenizer = \"%s\"%n",
                        answer.output(), answer.vocabulary(), answer.words(), answer.output());
    }
}
