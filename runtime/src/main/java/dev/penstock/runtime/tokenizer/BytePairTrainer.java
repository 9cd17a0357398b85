package dev.penstock.runtime.tokenizer;

import static java.util.Objects.requireNonNull;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.function.IntConsumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Learns a byte-level byte-pair encoding: the most frequent pair of adjacent tokens within words
 * becomes a token, again and again. Of pairs that are equally frequent the one with the smaller
 * left token is taken, then the one with the smaller right token, tokens being numbered in the
 * order in which they were learned after the 256 bytes; so the result depends on nothing but the
 * counts of the words.
 */
public final class BytePairTrainer {
    /** A pair that comes once would only learn a word by heart. */
    private static final long LEAST_COUNT = 2;

    private static final int BYTES = 256;

    /** Tokens from the 256 bytes on, each with the two it is made of. */
    private final List<String> tokens =
            IntStream.range(0, BYTES)
                    .mapToObj(value -> "" + ByteSymbols.of(value))
                    .sorted()
                    .collect(Collectors.toCollection(ArrayList::new));

    private final List<int[]> merges = new ArrayList<>();
    private final int[][] words;
    private final long[] counts;
    private final Map<Long, Long> pairCounts = new HashMap<>();
    private final Map<Long, IntList> places = new HashMap<>();
    private final PriorityQueue<Candidate> queue =
            new PriorityQueue<>(
                    Comparator.comparingLong(Candidate::count)
                            .reversed()
                            .thenComparingLong(Candidate::pair));

    private BytePairTrainer(WordCounts text) {
        Map<Character, Integer> ids = new HashMap<>();
        for (int id = 0; id < BYTES; id++) {
            ids.put(tokens.get(id).charAt(0), id);
        }
        Map<String, Long> sorted = text.sorted();
        words = new int[sorted.size()][];
        counts = new long[sorted.size()];
        int index = 0;
        for (Map.Entry<String, Long> word : sorted.entrySet()) {
            String symbols = ByteSymbols.of(word.getKey().getBytes(StandardCharsets.UTF_8));
            words[index] = symbols.chars().map(c -> ids.get((char) c)).toArray();
            counts[index] = word.getValue();
            countPairs(index);
            index++;
        }
        pairCounts.forEach((pair, count) -> queue.add(new Candidate(pair, count)));
    }

    /** A pair and how often it came when it was queued. */
    private record Candidate(long pair, long count) {}

    /**
     * Learns an encoding.
     *
     * @param text the words to learn from
     * @param vocabulary tokens that it may have, the one that ends a text included; more than 256
     * @param progress receives the number of tokens from time to time
     * @return has fewer tokens where no pair comes twice any more
     */
    public static TrainedPairs train(WordCounts text, int vocabulary, IntConsumer progress) {
        var trainer = new BytePairTrainer(text);
        while (trainer.tokens.size() + 1 < vocabulary && trainer.learn()) {
            progress.accept(trainer.tokens.size());
        }
        return new TrainedPairs(trainer.tokens, trainer.merges);
    }

    private boolean learn() {
        while (true) {
            Candidate best = queue.poll();
            if (best == null || best.count() < LEAST_COUNT) {
                return false;
            }
            long count = pairCounts.getOrDefault(best.pair(), 0L);
            if (count == best.count()) {
                merge(best.pair());
                return true;
            }
            // it came with an earlier count; how often it comes now decides when it is its turn
            if (count > 0) {
                queue.add(new Candidate(best.pair(), count));
            }
        }
    }

    private void merge(long pair) {
        int left = (int) (pair >>> 32);
        int right = (int) pair;
        int made = tokens.size();
        tokens.add(tokens.get(left) + tokens.get(right));
        merges.add(new int[] {left, right});
        Map<Long, Long> changed = new HashMap<>();
        IntList within = requireNonNull(places.remove(pair), "a pair that is counted has places");
        for (int index : within.distinct()) {
            apply(index, left, right, made, changed);
        }
        pairCounts.remove(pair);
        changed.forEach(this::requeue);
    }

    /** Counts go up by what was made and down by what it took apart. */
    private void requeue(long pair, long change) {
        long count = pairCounts.merge(pair, change, Long::sum);
        if (count <= 0) {
            pairCounts.remove(pair);
        } else if (change > 0) {
            queue.add(new Candidate(pair, count));
        }
    }

    private void apply(int index, int left, int right, int made, Map<Long, Long> changed) {
        int[] word = words[index];
        int[] merged = new int[word.length];
        int count = 0;
        for (int i = 0; i < word.length; i++) {
            boolean here = i + 1 < word.length && word[i] == left && word[i + 1] == right;
            merged[count++] = here ? made : word[i];
            i += here ? 1 : 0;
        }
        if (count == word.length) {
            return; // another merge has taken the pair apart
        }
        merged = Arrays.copyOf(merged, count);
        change(word, -counts[index], changed);
        change(merged, counts[index], changed);
        for (int i = 0; i + 1 < count; i++) {
            if (merged[i] == made || merged[i + 1] == made) {
                places.computeIfAbsent(pair(merged[i], merged[i + 1]), _ -> new IntList())
                        .add(index);
            }
        }
        words[index] = merged;
    }

    private static void change(int[] word, long count, Map<Long, Long> changed) {
        for (int i = 0; i + 1 < word.length; i++) {
            changed.merge(pair(word[i], word[i + 1]), count, Long::sum);
        }
    }

    private void countPairs(int index) {
        int[] word = words[index];
        for (int i = 0; i + 1 < word.length; i++) {
            long pair = pair(word[i], word[i + 1]);
            pairCounts.merge(pair, counts[index], Long::sum);
            places.computeIfAbsent(pair, _ -> new IntList()).add(index);
        }
    }

    private static long pair(int left, int right) {
        return (long) left << 32 | right;
    }

    /** Words in which a pair is, or was. */
    private static final class IntList {
        private int[] values = new int[2];
        private int count;

        void add(int value) {
            if (count > 0 && values[count - 1] == value) {
                return;
            }
            if (count == values.length) {
                values = Arrays.copyOf(values, 2 * count);
            }
            values[count++] = value;
        }

        int[] distinct() {
            return IntStream.of(values).limit(count).distinct().toArray();
        }
    }
}
