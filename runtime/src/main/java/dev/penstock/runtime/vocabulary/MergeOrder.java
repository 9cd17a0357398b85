package dev.penstock.runtime.vocabulary;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Finds the merges of a byte-pair encoding that is known by its tokens alone. Tokens are numbered
 * in the order in which they were merged; so the merge that made a token joins the two parts that
 * are left of its bytes when all earlier merges have been applied.
 */
final class MergeOrder {
    private final Map<String, Integer> rank = new HashMap<>();

    /**
     * Learns the tokens.
     *
     * @param tokens bytes by number; special tokens are left out
     */
    MergeOrder(Map<Integer, byte[]> tokens) {
        tokens.forEach((number, bytes) -> rank.put(latin(bytes), number));
    }

    /** Returns the two parts of a token, or nothing if it is one byte or no merge of two. */
    Optional<Parts> parts(int token, byte[] bytes) {
        String text = latin(bytes);
        List<String> parts = new ArrayList<>();
        for (int i = 0; i < text.length(); i++) {
            parts.add(text.substring(i, i + 1));
        }
        while (parts.size() > 2) {
            int best = -1;
            int lowest = token;
            for (int i = 0; i + 1 < parts.size(); i++) {
                int joined = rank.getOrDefault(parts.get(i) + parts.get(i + 1), token);
                if (joined < lowest) {
                    best = i;
                    lowest = joined;
                }
            }
            if (best < 0) {
                return Optional.empty();
            }
            parts.set(best, parts.get(best) + parts.remove(best + 1));
        }
        return parts.size() == 2
                ? Optional.of(new Parts(bytes(parts.get(0)), bytes(parts.get(1))))
                : Optional.empty();
    }

    /** The bytes of both parts of a token. */
    record Parts(byte[] first, byte[] second) {}

    private static String latin(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    private static byte[] bytes(String latin) {
        return latin.getBytes(StandardCharsets.ISO_8859_1);
    }
}
