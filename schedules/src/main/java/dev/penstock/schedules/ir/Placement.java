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
}
