package dev.penstock.schedules.render;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.Wiring;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * Where two schedules part.
 *
 * @param shapes what differs beside the programs, one sentence each
 * @param ranks entry for every rank whose programs differ
 */
public record ScheduleDiff(List<String> shapes, List<RankDiff> ranks) {
    private static final int AROUND = 3;

    /**
     * The difference of one rank.
     *
     * @param position first op that is not the same in both
     * @param first the ops of the first schedule around it
     * @param second the ops of the second around it
     * @param onlyFirst ops that the second does not have, or not as often
     * @param onlySecond ops that the first does not have, or not as often
     */
    public record RankDiff(
            int rank,
            int position,
            String first,
            String second,
            List<String> onlyFirst,
            List<String> onlySecond) {}

    public ScheduleDiff {
        shapes = List.copyOf(shapes);
        ranks = List.copyOf(ranks);
    }

    /** Compares two schedules of any shapes. */
    public static ScheduleDiff of(Schedule first, Schedule second) {
        var ranks = new ArrayList<RankDiff>();
        int both = Math.min(first.shape().ranks(), second.shape().ranks());
        for (int rank = 0; rank < both; rank++) {
            List<Op> a = first.program(rank).ops();
            List<Op> b = second.program(rank).ops();
            int position = parting(a, b);
            if (position >= 0) {
                ranks.add(
                        new RankDiff(
                                rank,
                                position,
                                around(a, position, first.shape()),
                                around(b, position, second.shape()),
                                surplus(a, b, first.shape()),
                                surplus(b, a, second.shape())));
            }
        }
        return new ScheduleDiff(shapes(first, second), ranks);
    }

    /** Whether there is no difference but the name. */
    public boolean isEmpty() {
        return shapes.isEmpty() && ranks.isEmpty();
    }

    private static List<String> shapes(Schedule first, Schedule second) {
        var differences = new ArrayList<String>();
        PipelineShape a = first.shape();
        PipelineShape b = second.shape();
        differ(differences, "ranks", a.ranks(), b.ranks());
        differ(differences, "chunks", a.chunks(), b.chunks());
        differ(differences, "micro-batches", a.microBatches(), b.microBatches());
        differ(differences, "slice lengths", a.sliceLengths(), b.sliceLengths());
        differ(
                differences,
                "placement",
                first.placement().rankOfStage(),
                second.placement().rankOfStage());
        differ(differences, "peers", a.peers(), b.peers());
        if (a.equals(b)) {
            differ(differences, "absent ranks", absent(first), absent(second));
        }
        differ(differences, "shared stages", first.sharedGroups(), second.sharedGroups());
        return differences;
    }

    private static List<Integer> absent(Schedule schedule) {
        return schedule.placement().wiring().map(Wiring::absent).orElse(List.of());
    }

    private static void differ(List<String> differences, String what, Object first, Object second) {
        if (!Objects.equals(first, second)) {
            differences.add("%s: %s and %s".formatted(what, first, second));
        }
    }

    /** The first position at which they are not the same; -1 if there is none. */
    private static int parting(List<Op> a, List<Op> b) {
        int both = Math.min(a.size(), b.size());
        for (int i = 0; i < both; i++) {
            if (!a.get(i).equals(b.get(i))) {
                return i;
            }
        }
        return a.size() == b.size() ? -1 : both;
    }

    private static String around(List<Op> ops, int position, PipelineShape shape) {
        var text = new StringBuilder(position > AROUND ? "... " : "");
        for (int i = Math.max(0, position - AROUND);
                i < Math.min(ops.size(), position + AROUND + 1);
                i++) {
            String op = OpText.print(ops.get(i), shape);
            text.append(i == position ? "[" + op + "] " : op + " ");
        }
        if (position >= ops.size()) {
            text.append("[end]");
        } else if (position + AROUND + 1 < ops.size()) {
            text.append("...");
        }
        return text.toString().strip();
    }

    private static List<String> surplus(List<Op> of, List<Op> over, PipelineShape shape) {
        Map<Op, Integer> counts = new HashMap<>();
        over.forEach(op -> counts.merge(op, 1, Integer::sum));
        return of.stream()
                .filter(op -> counts.merge(op, -1, Integer::sum) < 0)
                .map(op -> OpText.print(op, shape))
                .collect(Collectors.toUnmodifiableList());
    }
}
