package dev.penstock.runtime.data.rows;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * The rows of a step in their micro-batches: sorted by length, cut into groups of neighbours, dealt
 * to the replicas so that each has about as many tokens, and arranged.
 *
 * @param rows entry m: those of micro-batch m, as numbers of the step's draw
 * @param tokens entry m: how many tokens the sequences of micro-batch m have
 */
public record StepRows(List<int[]> rows, int[] tokens) {
    /**
     * Groups the rows of a step.
     *
     * @param lengths of the rows in the order in which they are drawn
     * @param microBatches of all replicas; divides their number
     * @param context the most tokens of a row
     */
    public static StepRows of(int[] lengths, int microBatches, int context, RowsApart apart) {
        int each = lengths.length / microBatches;
        List<int[]> rows = new ArrayList<>();
        int[] tokens = new int[microBatches];
        if (apart.padded()) {
            for (int m = 0; m < microBatches; m++) {
                rows.add(consecutive(m * each, each));
            }
            Arrays.fill(tokens, context);
            return new StepRows(rows, tokens);
        }
        int[] sorted = sorted(lengths);
        int[] groupTokens = new int[microBatches];
        for (int group = 0; group < microBatches; group++) {
            int longest = lengths[sorted[(group + 1) * each - 1]];
            groupTokens[group] = apart.rounded(longest, context);
        }
        int position = 0;
        for (int[] groups : dealt(groupTokens, apart.replicas())) {
            int[] own = Arrays.stream(groups).map(group -> groupTokens[group]).toArray();
            for (int index : apart.arrangement().of(own)) {
                int group = groups[index];
                rows.add(Arrays.copyOfRange(sorted, group * each, (group + 1) * each));
                tokens[position++] = groupTokens[group];
            }
        }
        return new StepRows(rows, tokens);
    }

    private static int[] consecutive(int first, int count) {
        int[] numbers = new int[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = first + i;
        }
        return numbers;
    }

    /** Short ones first; of equal ones that which was drawn earlier. */
    private static int[] sorted(int[] lengths) {
        return Arrays.stream(consecutive(0, lengths.length))
                .boxed()
                .sorted(Comparator.comparingInt(row -> lengths[row]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    /**
     * Deals groups to replicas, as many to each: the longest that is left goes to the one that has
     * the fewest tokens so far.
     *
     * @param tokens of the groups, rising
     * @return for each replica its groups, rising
     */
    private static List<int[]> dealt(int[] tokens, int replicas) {
        int room = tokens.length / replicas;
        int[][] groups = new int[replicas][room];
        int[] dealt = new int[replicas];
        long[] sums = new long[replicas];
        for (int group = tokens.length - 1; group >= 0; group--) {
            int least = -1;
            for (int r = 0; r < replicas; r++) {
                if (dealt[r] < room && (least < 0 || sums[r] < sums[least])) {
                    least = r;
                }
            }
            dealt[least]++;
            groups[least][room - dealt[least]] = group;
            sums[least] += tokens[group];
        }
        return List.of(groups);
    }
}
