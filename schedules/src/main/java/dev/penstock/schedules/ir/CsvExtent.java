package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * How far the computations of a file reach: which stages, micro-batches and slices there are, and
 * who has which stage. Indices start at 0 and leave no gap, or a slip of the pen would be a bigger
 * pipeline.
 */
final class CsvExtent {
    /** Who computes a stage, and where it says so first. */
    private record Home(int rank, TextPosition position) {}

    private final List<TextProblem> problems = new ArrayList<>();
    private final SortedMap<Integer, Home> stages = new TreeMap<>();
    private final SortedMap<Integer, TextPosition> microBatches = new TreeMap<>();
    private final SortedMap<Integer, TextPosition> slices = new TreeMap<>();
    private final Map<Integer, Set<Integer>> strangers = new HashMap<>();
    private final List<TextProblem> strange = new ArrayList<>();
    private final CsvPeers peers = new CsvPeers();

    void add(int rank, Op op, TextPosition position) {
        for (Op.Compute part : op.computations()) {
            WorkUnit unit = part.unit();
            addStage(rank, unit.stage(), position);
            peers.add(rank, unit);
            microBatches.putIfAbsent(unit.microBatch(), position);
            slices.putIfAbsent(unit.slice(), position);
        }
    }

    private void addStage(int rank, int stage, TextPosition position) {
        Home home = stages.computeIfAbsent(stage, _ -> new Home(rank, position));
        if (home.rank() != rank
                && strangers.computeIfAbsent(stage, _ -> new HashSet<>()).add(rank)) {
            strange.add(
                    new TextProblem(
                            position,
                            "stage %d is computed on rank %d (line %d, column %d) and here on rank %d"
                                    .formatted(
                                            stage,
                                            home.rank(),
                                            home.position().line(),
                                            home.position().column(),
                                            rank)));
        }
    }

    /** Why this is no pipeline of so many ranks; empty if it is one. */
    List<TextProblem> doubts(int ranks) {
        int peerCount = peers(ranks);
        if (peerCount == 1) {
            problems.addAll(strange);
        }
        int before = problems.size();
        if (stages.isEmpty()) {
            problem(
                    new TextPosition(1, 1),
                    "expected a line of actions per rank, got no computation");
            return problems;
        }
        SortedMap<Integer, TextPosition> stagePositions = new TreeMap<>();
        stages.forEach((stage, home) -> stagePositions.put(stage, home.position()));
        checkGaps("stage", "stages", stagePositions);
        checkGaps("micro-batch", "micro-batches", microBatches);
        checkGaps("slice", "slices", slices);
        if (problems.size() == before && stages.size() % (ranks / peerCount) != 0) {
            problem(
                    new TextPosition(ranks, 1),
                    "every rank has as many stages, got %d stages on %d ranks (lines)"
                            .formatted(stages.size(), ranks));
        }
        return problems;
    }

    /**
     * The shape as far as indices leave no gap, with as many stages on every rank; all of it where
     * there are no doubts. Nothing if that is no pipeline.
     *
     * @throws IllegalArgumentException if it is too large
     */
    Optional<PipelineShape> beforeGaps(int ranks) {
        int peerCount = peers(ranks);
        int chunks = unbroken(stages) / Math.max(1, ranks / peerCount);
        int unbrokenSlices = unbroken(slices);
        return chunks == 0 || unbroken(microBatches) == 0 || unbrokenSlices == 0
                ? Optional.empty()
                : Optional.of(
                        new PipelineShape(
                                ranks,
                                chunks,
                                unbroken(microBatches),
                                Collections.nCopies(unbrokenSlices, 1),
                                peerCount));
    }

    private static int unbroken(SortedMap<Integer, ?> indices) {
        int count = 0;
        while (indices.containsKey(count)) {
            count++;
        }
        return count;
    }

    private void checkGaps(String what, String plural, SortedMap<Integer, TextPosition> indices) {
        int expected = 0;
        for (Map.Entry<Integer, TextPosition> entry : indices.entrySet()) {
            int index = entry.getKey();
            if (index > expected) {
                problem(
                        entry.getValue(),
                        "%s %d leaves a gap: nobody computes %s"
                                .formatted(
                                        what,
                                        index,
                                        expected == index - 1
                                                ? what + " " + expected
                                                : "%s %d to %d"
                                                        .formatted(plural, expected, index - 1)));
            }
            expected = index + 1;
        }
    }

    private void problem(TextPosition position, String message) {
        problems.add(new TextProblem(position, message));
    }

    int slices() {
        return slices.size();
    }

    /** Of a wired order; 1 for one pipeline. */
    private int peers(int ranks) {
        return peers.count(ranks);
    }

    /** Where the first so many stages are in a pipeline of so many ranks, which leave no gap. */
    Placement placement(int count, int ranks) {
        return new Placement(
                stages.values().stream().limit(count).map(home -> home.rank() % ranks).toList());
    }
}
