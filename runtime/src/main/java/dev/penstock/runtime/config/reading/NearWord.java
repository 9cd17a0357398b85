package dev.penstock.runtime.config.reading;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/** The word that somebody meant who wrote another one. */
public final class NearWord {
    private NearWord() {}

    /**
     * The known word that is nearest, if it is near enough to be a slip of the pen. A word of which
     * this one is the beginning, up to a hyphen, is meant rather than one that is nearer as it is
     * short, and of several such words the first.
     */
    public static Optional<String> among(Collection<String> known, String word) {
        String plain = plain(word);
        Optional<String> nearest =
                known.stream()
                        .min(
                                Comparator.comparingInt(
                                        candidate -> distance(plain(candidate), plain)));
        if (nearest.isPresent() && plain(nearest.get()).equals(plain)) {
            return nearest;
        }
        return known.stream()
                .filter(candidate -> goesOn(candidate, word) || hasSameParts(candidate, word))
                .findFirst()
                .or(
                        () ->
                                nearest.filter(
                                        candidate ->
                                                distance(plain(candidate), plain)
                                                        <= Math.max(1, plain.length() / 3)));
    }

    private static boolean goesOn(String known, String word) {
        return !word.isBlank() && known.startsWith(word.toLowerCase(Locale.ROOT) + "-");
    }

    private static boolean hasSameParts(String known, String word) {
        return parts(known).equals(parts(word));
    }

    private static List<String> parts(String word) {
        return Stream.of(word.toLowerCase(Locale.ROOT).split("[-_]")).sorted().toList();
    }

    /** minLearningRate, min_learning_rate and min-learning-rate are the same word. */
    private static String plain(String word) {
        return word.replaceAll("[-_]", "").toLowerCase(Locale.ROOT);
    }

    /** Least number of letters to insert, delete, replace or swap with their neighbour. */
    static int distance(String a, String b) {
        int[][] cost = new int[a.length() + 1][b.length() + 1];
        for (int i = 0; i <= a.length(); i++) {
            for (int j = 0; j <= b.length(); j++) {
                cost[i][j] = i == 0 || j == 0 ? i + j : cheapest(cost, a, b, i, j);
            }
        }
        return cost[a.length()][b.length()];
    }

    private static int cheapest(int[][] cost, String a, String b, int i, int j) {
        int replace = cost[i - 1][j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        int best = Math.min(replace, Math.min(cost[i - 1][j], cost[i][j - 1]) + 1);
        boolean swapped =
                i > 1
                        && j > 1
                        && a.charAt(i - 1) == b.charAt(j - 2)
                        && a.charAt(i - 2) == b.charAt(j - 1);
        return swapped ? Math.min(best, cost[i - 2][j - 2] + 1) : best;
    }
}
