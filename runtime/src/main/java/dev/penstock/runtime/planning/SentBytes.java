package dev.penstock.runtime.planning;

import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.metrics.Notices;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The bytes that the ranks of a run will send to each other in a training step, as a run counts
 * them: entry r is rank r's.
 */
public final class SentBytes {
    private static final int MOST_GROUPS = 16;
    private static final int MOST_RANGES = 8;

    private SentBytes() {}

    /** Returns the bytes by use, for programs. */
    public static List<Map<String, Long>> byUse(List<StepTraffic> ranks) {
        return ranks.stream().map(StepTraffic::byUse).toList();
    }

    /**
     * Returns lines for people: one for all ranks that send the same; none if no rank sends
     * anything.
     *
     * <pre>
     * bytes sent per training step:
     *   ranks 0-1, 4: activations 1.5 MiB, gradient sums 3.0 MiB
     * </pre>
     */
    public static List<String> lines(List<StepTraffic> ranks) {
        Map<String, List<Integer>> groups = new LinkedHashMap<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            StepTraffic sent = ranks.get(rank);
            if (sent.bytes() > 0) {
                groups.computeIfAbsent(Notices.traffic(sent), _ -> new ArrayList<>()).add(rank);
            }
        }
        List<String> lines = new ArrayList<>();
        if (!groups.isEmpty()) {
            lines.add("bytes sent per training step:");
        }
        groups.entrySet().stream()
                .limit(MOST_GROUPS)
                .map(group -> "  %s: %s".formatted(numbers(group.getValue()), group.getKey()))
                .forEach(lines::add);
        if (groups.size() > MOST_GROUPS) {
            lines.add(
                    "  %d more lines; --json lists all ranks"
                            .formatted(groups.size() - MOST_GROUPS));
        }
        return lines;
    }

    /**
     * Returns {@code rank 3} or {@code ranks 0-2, 5}; for thousands of ranks, their number and the
     * first ranges.
     */
    private static String numbers(List<Integer> rising) {
        List<String> ranges = new ArrayList<>();
        int next = 0;
        while (next < rising.size()) {
            int first = rising.get(next);
            int last = first;
            while (next + 1 < rising.size() && rising.get(next + 1) == last + 1) {
                next++;
                last++;
            }
            next++;
            ranges.add(last > first ? first + "-" + last : "" + first);
        }
        if (rising.size() == 1) {
            return "rank " + ranges.getFirst();
        }
        return ranges.size() <= MOST_RANGES
                ? "ranks " + String.join(", ", ranges)
                : "%d ranks (%s, ..)"
                        .formatted(
                                rising.size(), String.join(", ", ranges.subList(0, MOST_RANGES)));
    }
}
