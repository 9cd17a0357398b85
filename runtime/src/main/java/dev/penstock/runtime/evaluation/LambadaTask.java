package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** LAMBADA: JSON lines with a {@code text}, whose last word is to be guessed. */
final class LambadaTask {
    private LambadaTask() {}

    /**
     * Megatron-LM: right if every token of the last word is the likeliest ({@code
     * --strict-lambada}), beside the looser figure of the last token alone. What has nothing before
     * it is not guessed and counts as right, as it does there; of texts that are longer than the
     * context the end is read.
     */
    static List<TaskText> megatron(
            TaskFiles reader, List<Path> files, Tokenizer tokenizer, int context) {
        List<TaskText> texts = new ArrayList<>();
        for (int file = 0; file < files.size(); file++) {
            for (TaskFiles.Line line : reader.lines(files.get(file))) {
                String text = textOf(reader, line);
                if (!text.isEmpty()) {
                    String word = Whitespace.lastWord(text);
                    texts.add(megatron(file, text, word, tokenizer, context));
                }
            }
        }
        return texts;
    }

    /** Returns the text of a line; a problem and nothing if it has no word. */
    private static String textOf(TaskFiles reader, TaskFiles.Line line) {
        int before = reader.problems();
        String text = reader.textOf(line, "text");
        if (!Whitespace.lastWord(text).isEmpty()) {
            return text;
        }
        if (reader.problems() == before) {
            reader.wrong(line.at(), "a text with at least one word", "none");
        }
        return "";
    }

    private static TaskText megatron(
            int file, String text, String word, Tokenizer tokenizer, int context) {
        String before = Whitespace.strip(text.substring(0, text.lastIndexOf(word)));
        List<Window> strict =
                TextWindows.ending(tokenizer.encode(before), tokenizer.encode(" " + word), context);
        int[] whole = tokenizer.encode(text);
        int last = whole.length - 1;
        List<Window> loose =
                TextWindows.ending(Arrays.copyOf(whole, last), new int[] {whole[last]}, context);
        List<Window> windows = new ArrayList<>(strict);
        windows.addAll(loose);
        return new TaskText(
                file,
                windows,
                (tally, scores) -> {
                    tally.texts++;
                    tally.right += isRight(scores.subList(0, strict.size()));
                    tally.rightByLastToken += isRight(scores.subList(strict.size(), scores.size()));
                });
    }

    private static int isRight(List<Score> scores) {
        return scores.stream().allMatch(Score::greedy) ? 1 : 0;
    }

    static Map<String, Number> megatronMeasures(Tally tally) {
        return new Measures()
                .count("texts", tally.texts)
                .figure("accuracy", tally.share(tally.right))
                .figure("lastTokenAccuracy", tally.share(tally.rightByLastToken))
                .all();
    }

    /** lm-evaluation-harness: what follows the last blank, given everything before it. */
    static List<TaskText> lmEval(
            TaskFiles reader, List<Path> files, Tokenizer tokenizer, int context) {
        List<TaskText> texts = new ArrayList<>();
        for (int file = 0; file < files.size(); file++) {
            for (TaskFiles.Line line : reader.lines(files.get(file))) {
                String text = textOf(reader, line);
                if (text.isEmpty()) {
                    continue;
                }
                int blank = text.lastIndexOf(' ');
                var pair =
                        ContextAndTarget.of(
                                tokenizer,
                                text.substring(0, Math.max(0, blank)),
                                " " + text.substring(blank + 1));
                if (pair.check(reader, line.at(), context)) {
                    texts.add(lmEval(file, pair, context));
                }
            }
        }
        return texts;
    }

    private static TaskText lmEval(int file, ContextAndTarget pair, int context) {
        return new TaskText(
                file,
                TextWindows.ending(pair.context(), pair.target(), context),
                (tally, scores) -> {
                    tally.texts++;
                    tally.right += isRight(scores);
                    scores.forEach(score -> tally.logLikelihood += score.logLikelihood());
                });
    }

    static Map<String, Number> lmEvalMeasures(Tally tally) {
        return new Measures()
                .count("texts", tally.texts)
                .figure("perplexity", Math.exp(-tally.logLikelihood / tally.texts))
                .figure("accuracy", tally.share(tally.right))
                .all();
    }
}
