package dev.penstock.runtime.model.family;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** All families. */
public final class Families {
    /** GPT-2. */
    public static final Family GPT2 = new Gpt2Family();

    private static final List<Family> ALL =
            Stream.of(
                            Stream.of(GPT2),
                            Stream.of(LlamaFamily.values()),
                            Stream.of(new RetNetFamily()),
                            Stream.of(BertFamily.values()))
                    .<Family>flatMap(each -> each)
                    .toList();

    private Families() {}

    /** Returns the names of all families. */
    public static List<String> words() {
        return ALL.stream().map(Family::word).toList();
    }

    /** Finds a family by its name. */
    public static Optional<Family> find(String word) {
        return ALL.stream().filter(family -> family.word().equals(word)).findFirst();
    }

    /** Returns what to say of a name that no family has. */
    public static String unknown(String word) {
        String known = String.join(", ", words());
        return nearest(word)
                .map(near -> "expected one of %s, got %s; try %s".formatted(known, word, near))
                .orElse("expected one of %s, got %s".formatted(known, word));
    }

    /** Returns the family whose name looks like a word, if there is one. */
    public static Optional<String> nearest(String word) {
        String best = null;
        int least = Math.max(2, word.length() / 2) + 1;
        for (String known : words()) {
            int distance = distance(word, known);
            if (distance < least) {
                least = distance;
                best = known;
            }
        }
        return Optional.ofNullable(best);
    }

    /** The number of letters to insert, delete or replace. */
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j < row.length; j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j < row.length; j++) {
                int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
            }
        }
        return row[b.length()];
    }
}
