package dev.penstock.runtime.tokenizer;

import java.util.Arrays;
import java.util.PriorityQueue;

/**
 * Merges the bytes of a word: of all adjacent pairs the one that was learned first, the leftmost
 * where it occurs more than once, until no pair is left that was learned.
 */
final class WordMerger {
    /** Up to here a look at every pair per merge is faster than a queue of them. */
    private static final int SHORT = 64;

    private final MergeTable merges;

    WordMerger(MergeTable merges) {
        this.merges = merges;
    }

    /** Returns the tokens of a word that begins as these tokens of single bytes. */
    int[] merge(int[] word) {
        return word.length <= SHORT ? mergeShort(word) : mergeLong(word);
    }

    private int[] mergeShort(int[] word) {
        int[] tokens = word.clone();
        int count = tokens.length;
        while (count > 1) {
            int best = -1;
            int bestRank = MergeTable.NONE;
            for (int i = 0; i + 1 < count; i++) {
                int rank = merges.rank(tokens[i], tokens[i + 1]);
                if (rank < bestRank) {
                    bestRank = rank;
                    best = i;
                }
            }
            if (best < 0) {
                break;
            }
            tokens[best] = merges.merged(tokens[best], tokens[best + 1]);
            System.arraycopy(tokens, best + 2, tokens, best + 1, count - best - 2);
            count--;
        }
        return Arrays.copyOf(tokens, count);
    }

    /** A pair that was possible when it was queued. */
    private record Candidate(int rank, int at, int left, int right)
            implements Comparable<Candidate> {
        @Override
        public int compareTo(Candidate other) {
            int byRank = Integer.compare(rank, other.rank);
            return byRank != 0 ? byRank : Integer.compare(at, other.at);
        }
    }

    private int[] mergeLong(int[] word) {
        int[] tokens = word.clone();
        int[] next = new int[word.length];
        int[] previous = new int[word.length];
        for (int i = 0; i < word.length; i++) {
            next[i] = i + 1;
            previous[i] = i - 1;
        }
        var queue = new PriorityQueue<Candidate>();
        for (int i = 0; i + 1 < word.length; i++) {
            offer(queue, tokens, i, i + 1);
        }
        for (Candidate best = queue.poll(); best != null; best = queue.poll()) {
            int at = best.at;
            int second = next[at];
            // merged since, with another neighbour or into one
            if (tokens[at] != best.left || second >= word.length || tokens[second] != best.right) {
                continue;
            }
            tokens[at] = merges.merged(best.left, best.right);
            tokens[second] = -1;
            next[at] = next[second];
            if (next[at] < word.length) {
                previous[next[at]] = at;
                offer(queue, tokens, at, next[at]);
            }
            if (previous[at] >= 0) {
                offer(queue, tokens, previous[at], at);
            }
        }
        return Arrays.stream(tokens).filter(token -> token >= 0).toArray();
    }

    private void offer(PriorityQueue<Candidate> queue, int[] tokens, int at, int second) {
        int rank = merges.rank(tokens[at], tokens[second]);
        if (rank != MergeTable.NONE) {
            queue.add(new Candidate(rank, at, tokens[at], tokens[second]));
        }
    }
}
