package dev.penstock.runtime.vocabulary;

import dev.penstock.runtime.vocabulary.Vocabulary.Kind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Turns an order of merges into a score for each piece. An engine that knows scores joins any two
 * neighbours that spell a piece, the piece with the highest score first; one that knows merges
 * joins the listed pairs alone, in their order.
 *
 * <p>Both do the same for every text if they do for the text of each piece. For what merges make of
 * two neighbours is what they make of that text alone, as long as nothing has crossed its ends; so
 * at most one pair of neighbours ever becomes a given piece, the pair that is left of its text
 * before the last merge, and the rank of that merge is the piece's. If instead two parts are left
 * for good, an engine with scores would join them, whatever the scores: that is refused.
 */
final class PieceScores {
    /** Longer than any real one; time grows with the square. */
    private static final int MOST_CHARACTERS = 512;

    private final List<String> tokens;
    private final boolean wordsApart;
    private final Map<String, Integer> numbers = new HashMap<>();
    private final Map<Pair, Merge> merges = new HashMap<>();
    private final List<String> problems = new ArrayList<>();

    /** Numbers of two neighbours. */
    private record Pair(int first, int second) {}

    private record Merge(int rank, int result) {}

    /**
     * Learns tokens and merges.
     *
     * @param tokens by number
     * @param merges in order, two parts each
     * @param wordsApart whether text is cut before each sign for a space, so that no merge joins
     *     one to what is before it
     */
    PieceScores(List<String> tokens, List<List<String>> merges, boolean wordsApart) {
        this.tokens = tokens;
        this.wordsApart = wordsApart;
        for (int number = 0; number < tokens.size(); number++) {
            numbers.put(tokens.get(number), number);
        }
        for (int rank = 0; rank < merges.size(); rank++) {
            learn(rank, merges.get(rank));
        }
    }

    private void learn(int rank, List<String> parts) {
        String first = parts.getFirst();
        String second = parts.getLast();
        Integer left = numbers.get(first);
        Integer right = numbers.get(second);
        Integer result = numbers.get(first + second);
        if (left == null || right == null || result == null) {
            problems.add("merge %d: no token '%s%s' of two tokens".formatted(rank, first, second));
        } else if (PieceBytes.is(first) || PieceBytes.is(second)) {
            problems.add(
                    "merge %d: expected no bytes in merges, got '%s' and '%s'"
                            .formatted(rank, first, second));
        } else if (!wordsApart || !second.startsWith(SentencePieces.SPACE)) {
            merges.put(new Pair(left, right), new Merge(rank, result));
        }
    }

    /** Returns what no scores can express. */
    List<String> problems() {
        return problems;
    }

    /**
     * Returns the scores by number: 0 for the result of the first merge, then falling; the lowest
     * of all for a piece that no merge makes.
     *
     * @param kinds of the tokens; one that is cut out of the text before any merge may have any
     *     text
     */
    List<Float> of(List<Kind> kinds, float lowest) {
        List<Float> scores = new ArrayList<>(Collections.nCopies(tokens.size(), lowest));
        for (int number = 0; number < tokens.size(); number++) {
            String token = tokens.get(number);
            if (token.contains(" ")) {
                continue; // no text has one any more when it is merged
            }
            boolean cutOut =
                    switch (kinds.get(number)) {
                        case CONTROL, UNKNOWN, USER_DEFINED -> true;
                        case NORMAL, BYTE, UNUSED -> false;
                    };
            int[] characters = token.codePoints().toArray();
            if (!cutOut && characters.length > MOST_CHARACTERS) {
                problems.add(
                        "expected tokens of at most %d characters, got %d in token %d"
                                .formatted(MOST_CHARACTERS, characters.length, number));
            } else if (!cutOut && characters.length > 1) {
                score(number, characters, scores);
            }
        }
        return scores;
    }

    private void score(int token, int[] characters, List<Float> scores) {
        int[] symbols = new int[characters.length];
        for (int i = 0; i < symbols.length; i++) {
            Integer number = numbers.get(Character.toString(characters[i]));
            symbols[i] = number == null ? -1 : number;
        }
        int count = symbols.length;
        int last = -1;
        while (count > 1) {
            int at = -1;
            Merge best = new Merge(Integer.MAX_VALUE, -1);
            for (int i = 0; i + 1 < count; i++) {
                Merge merge = merges.get(new Pair(symbols[i], symbols[i + 1]));
                if (merge != null && merge.rank < best.rank) {
                    at = i;
                    best = merge;
                }
            }
            if (at < 0) {
                break;
            }
            symbols[at] = best.result;
            System.arraycopy(symbols, at + 2, symbols, at + 1, count - at - 2);
            count--;
            last = best.rank;
        }
        if (count == 1) {
            scores.set(token, (float) -last);
        } else if (count == 2) {
            problems.add(
                    "token %d, '%s': its merges leave %s, but an engine with scores joins any two"
                                    .formatted(
                                            token,
                                            tokens.get(token),
                                            parts(token, Arrays.copyOf(symbols, 2)))
                            + " neighbours that spell a token");
        }
    }

    private String parts(int token, int[] symbols) {
        String whole = tokens.get(token);
        String second = symbols[1] < 0 ? null : tokens.get(symbols[1]);
        int cut =
                second == null
                        ? whole.offsetByCodePoints(whole.length(), -1)
                        : whole.length() - second.length();
        return "'%s' and '%s'".formatted(whole.substring(0, cut), whole.substring(cut));
    }
}
