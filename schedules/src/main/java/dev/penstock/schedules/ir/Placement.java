package dev.penstock.schedules.ir;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Which rank holds which stage.
 *
 * @param rankOfStage entry s is the rank of stage s
 */
public record Placement(List<Integer> rankOfStage) {
    public Placement {
        rankOfStage = List.copyOf(rankOfStage);
    }

    /**
     * Loop placement: stage s lives on rank s mod ranks. One chunk per rank is the plain pipeline.
     */
    public static Placement loop(int ranks, int chunks) {
        return new Placement(IntStream.range(0, ranks * chunks).mapToObj(s -> s % ranks).toList());
    }

    /**
     * V placement: rank r holds stages r and 2 x ranks - 1 - r, so that the stages in the middle
     * and the first and the last stage share a rank.
     */
    public static Placement v(int ranks) {
        return new Placement(
                IntStream.range(0, 2 * ranks)
                        .mapToObj(s -> s < ranks ? s : 2 * ranks - 1 - s)
                        .toList());
    }

    public int rankOf(int stage) {
        return rankOfStage.get(stage);
    }

    public int stages() {
        return rankOfStage.size();
    }

    /** The stages of a rank, rising: its chunk c is entry c. */
    public List<Integer> stagesOf(int rank) {
        return IntStream.range(0, stages()).filter(s -> rankOf(s) == rank).boxed().toList();
    }

    /** Whether the stage's input comes from another rank. */
    public boolean crossesBefore(int stage) {
        return stage > 0 && rankOf(stage - 1) != rankOf(stage);
    }

    /** Whether the stage's output goes to another rank. */
    public boolean crossesAfter(int stage) {
        return stage < stages() - 1 && rankOf(stage) != rankOf(stage + 1);
    }
}
