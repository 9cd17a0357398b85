package dev.penstock.runtime.data.labelled;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.util.List;

/**
 * Makes rows of texts: a token that begins them, and one behind each text. These are {@code [CLS]}
 * and {@code [SEP]} where the tokenizer has them, otherwise the two numbers behind its own tokens.
 *
 * @param first token of every row
 * @param behind token behind each text
 */
public record PairEncoder(Tokenizer tokenizer, int first, int behind) {
    /** Returns the encoder of a tokenizer. */
    public static PairEncoder of(Tokenizer tokenizer) {
        int own = tokenizer.vocabulary();
        int[] first = tokenizer.encode("[CLS]");
        int[] behind = tokenizer.encode("[SEP]");
        return first.length == 1 && behind.length == 1
                ? new PairEncoder(tokenizer, first[0], behind[0])
                : new PairEncoder(tokenizer, own, own + 1);
    }

    /** Returns how many tokens a model has to know. */
    public int vocabulary() {
        return Math.max(tokenizer.vocabulary(), Math.max(first, behind) + 1);
    }

    /**
     * Encodes a line's texts. What is too long loses tokens at the end of its longer text, the
     * second of equally long ones, until it fits, as in BERT's own programs.
     *
     * @param texts one or two
     * @param context the most tokens of a row, at least 3
     */
    public LabelledRow encode(List<String> texts, int label, int context) {
        int[] a = tokenizer.encode(texts.getFirst());
        int[] b = texts.size() == 1 ? new int[0] : tokenizer.encode(texts.getLast());
        int room = context - 1 - texts.size();
        int keptA = a.length;
        int keptB = b.length;
        while (keptA + keptB > room) {
            if (keptA > keptB) {
                keptA--;
            } else {
                keptB--;
            }
        }
        int second = keptA + 2;
        int[] tokens = new int[texts.size() == 1 ? second : second + keptB + 1];
        tokens[0] = first;
        System.arraycopy(a, 0, tokens, 1, keptA);
        tokens[second - 1] = behind;
        if (texts.size() > 1) {
            System.arraycopy(b, 0, tokens, second, keptB);
            tokens[tokens.length - 1] = behind;
        }
        return new LabelledRow(tokens, second, label);
    }
}
