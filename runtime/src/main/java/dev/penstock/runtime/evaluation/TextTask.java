package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Any text, as it is: every token but the first is guessed once. */
final class TextTask {
    private TextTask() {}

    /**
     * @param rows entry i: the tokens of file i
     * @param stride 1 to {@code context}
     */
    static List<TaskText> plain(List<int[]> rows, Tokenizer tokenizer, int context, int stride) {
        List<TaskText> texts = new ArrayList<>();
        for (int file = 0; file < rows.size(); file++) {
            int[] tokens = rows.get(file);
            long bytes = bytes(tokens, tokenizer);
            texts.add(
                    new TaskText(
                            file,
                            TextWindows.overlapping(tokens, context, stride),
                            (tally, scores) -> {
                                tally.texts++;
                                tally.tokens += tokens.length - 1;
                                tally.bytes += bytes;
                                scores.forEach(
                                        score -> tally.logLikelihood += score.logLikelihood());
                            }));
        }
        return texts;
    }

    /** Of the text for which the targets stand; tokens that only separate documents have none. */
    private static long bytes(int[] tokens, Tokenizer tokenizer) {
        int end = tokenizer.endOfText().orElse(-1);
        Map<Integer, Integer> lengths = new HashMap<>();
        long bytes = 0;
        for (int i = 1; i < tokens.length; i++) {
            int token = tokens[i];
            bytes +=
                    token == end
                            ? 0
                            : lengths.computeIfAbsent(token, t -> tokenizer.bytes(t).length);
        }
        return bytes;
    }

    static Map<String, Number> measures(Tally tally) {
        double loss = tally.loss();
        return new Measures()
                .count("tokens", tally.tokens)
                .count("bytes", tally.bytes)
                .figure("loss", loss)
                .figure("perplexity", Math.exp(loss))
                .figure("bitsPerToken", loss / Math.log(2))
                .figure("bitsPerByte", tally.bitsPerByte())
                .all();
    }
}
