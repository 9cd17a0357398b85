package dev.penstock.schedules.plan;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.util.Collections;
import java.util.List;
import java.util.Optional;

/**
 * What the planner knows of a kind of schedule. It finds out by generating small ones, so new kinds
 * take part by themselves; the closed forms of those it knows by name only let it skip hopeless
 * choices sooner.
 *
 * @param chunks numbers of stages per rank that it runs, of those that were asked for
 * @param sliced whether it runs token slices
 * @param splitsBackward whether its backwards are in two parts
 * @param vShaped whether its stages go down the ranks and up again, instead of round and round
 */
record ScheduleFamily(
        String kind,
        List<Integer> chunks,
        boolean sliced,
        boolean splitsBackward,
        boolean vShaped) {
    private static final int PROBE_RANKS = 3;
    private static final int PROBE_MICRO_BATCHES = 12;

    /** Every kind whose placement is known, with those of these chunks that it runs. */
    static List<ScheduleFamily> all(List<String> kinds, List<Integer> chunks) {
        return kinds.stream().flatMap(kind -> probe(kind, chunks).stream()).toList();
    }

    private static Optional<ScheduleFamily> probe(String kind, List<Integer> asked) {
        List<Integer> chunks =
                asked.stream().filter(v -> generated(kind, v, 1).isPresent()).toList();
        if (chunks.isEmpty()) {
            return Optional.empty();
        }
        Schedule sample = generated(kind, chunks.getLast(), 1).orElseThrow();
        boolean sliced = generated(kind, chunks.getLast(), 2).isPresent();
        boolean split =
                sample.programs().stream()
                        .flatMap(program -> program.ops().stream())
                        .flatMap(op -> op.computations().stream())
                        .anyMatch(op -> op instanceof Op.BackwardWeight);
        boolean loop = sample.placement().equals(Placement.loop(PROBE_RANKS, chunks.getLast()));
        boolean v = !loop && sample.placement().equals(Placement.v(PROBE_RANKS));
        return loop || v
                ? Optional.of(new ScheduleFamily(kind, chunks, sliced, split, v))
                : Optional.empty();
    }

    private static Optional<Schedule> generated(String kind, int chunks, int slices) {
        try {
            var shape =
                    new PipelineShape(
                            PROBE_RANKS,
                            chunks,
                            PROBE_MICRO_BATCHES,
                            Collections.nCopies(slices, 1));
            return Optional.of(Generators.generate(kind, shape));
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
    }

    /** Where the stages are. */
    Placement placement(int ranks, int chunksPerRank) {
        return vShaped ? Placement.v(ranks) : Placement.loop(ranks, chunksPerRank);
    }

    /** Whether one slice of it is the order of another kind, and so need not be looked at twice. */
    boolean needsSlices() {
        return switch (kind) {
            case "seq1f1b", "seq1f1b-interleaved", "terapipe", "terapipe-1f1b" -> true;
            default -> false;
        };
    }

    /** Whether one chunk of it is the order of another kind. */
    boolean needsChunks() {
        return kind.equals("gis");
    }

    /**
     * Units that rank {@code rank} holds at its peak at the very least, in every order of this
     * kind.
     */
    int leastPeakUnits(PipelineShape shape, int rank) {
        int ranks = shape.ranks();
        int micro = shape.microBatches();
        int perRank = shape.chunks() * shape.unitsPerStage();
        int least =
                switch (kind) {
                    case "gpipe", "terapipe", "breadth-first" -> perRank;
                    case "1f1b", "zb-h1" -> ranks - rank;
                    case "seq1f1b" -> ranks - rank - 1 + shape.slices();
                    case "interleaved-1f1b" -> {
                        int group = micro / Math.max(1, micro / ranks);
                        yield 2 * (ranks - rank - 1) + (shape.chunks() - 1) * group + 1;
                    }
                    case "gis" -> {
                        int distance = Math.ceilDiv(2 * ranks, 3);
                        boolean fills = micro >= 2 * distance + ranks;
                        yield fills ? distance * (shape.chunks() - 1) + ranks - rank : 1;
                    }
                    default -> 1;
                };
        return Math.min(least, perRank);
    }
}
