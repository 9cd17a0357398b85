package dev.penstock.runtime.config.run;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** What was probably meant by a word that nobody knows. */
public final class Suggestion {
    private Suggestion() {}

    /** The known word that is nearest, if it is near enough to be a slip of the pen. */
    public static Optional<String> among(Collection<String> known, String word) {
        String plain = plain(word);
        return known.stream()
                .min(Comparator.comparingInt(candidate -> distance(plain(candidate), plain)))
                .filter(
                        nearest ->
                                distance(plain(nearest), plain) <= Math.max(1, plain.length() / 3));
    }

    /**
     * The known key or section that was probably meant: a slip in its name, or its name in another
     * section. A word that stands in no section is rather a section's name than a key's.
     */
    static Optional<String> forKey(String path) {
        Optional<String> section = among(Keys.bySection().keySet(), path);
        if (path.indexOf('.') < 0 && section.isPresent()) {
            return section;
        }
        List<String> paths = Keys.all().stream().map(Key::path).toList();
        String name = path.substring(path.lastIndexOf('.') + 1);
        return among(paths, path)
                .or(
                        () ->
                                among(Keys.all().stream().map(Key::name).toList(), name)
                                        .flatMap(
                                                nearest ->
                                                        paths.stream()
                                                                .filter(
                                                                        p ->
                                                                                p.endsWith(
                                                                                        "."
                                                                                                + nearest))
                                                                .findFirst()))
                .or(() -> among(List.of(FaultEntries.NAME), path))
                .or(() -> section);
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
