package dev.penstock.runtime.model;

import java.util.ArrayList;
import java.util.List;

/**
 * How many transformer blocks each stage holds. Stage 0 has the embedding besides, the last stage
 * the final norm and the head.
 *
 * @param layersPerStage entry s is the number of blocks of stage s, at least 1; the last stage may
 *     hold the head alone (0), the first of several the embedding alone
 */
public record StagePartition(List<Integer> layersPerStage) {
    public StagePartition {
        layersPerStage = List.copyOf(layersPerStage);
        if (layersPerStage.isEmpty()) {
            throw new IllegalArgumentException("a partition needs at least 1 stage, got none");
        }
        for (int stage = 0; stage < layersPerStage.size(); stage++) {
            boolean inner = stage > 0 && stage < layersPerStage.size() - 1;
            int least = inner || layersPerStage.size() == 1 ? 1 : 0;
            if (layersPerStage.get(stage) < least) {
                throw new IllegalArgumentException(
                        "stage %d needs at least %d layers, got %s"
                                .formatted(stage, least, layersPerStage));
            }
        }
    }

    /**
     * A partition given by hand.
     *
     * @throws IllegalArgumentException if the layers do not add up to the model's
     */
    public static StagePartition given(GptShape shape, List<Integer> layersPerStage) {
        StagePartition partition = new StagePartition(layersPerStage);
        if (partition.layers() != shape.layers()) {
            throw new IllegalArgumentException(
                    "the partition %s holds %d layers, but the model has %d"
                            .formatted(layersPerStage, partition.layers(), shape.layers()));
        }
        return partition;
    }

    /**
     * The contiguous partition whose most expensive stage is cheapest, by FLOPs per token; among
     * equals the one with the smallest sum of squared costs. Every stage gets a layer, unless there
     * are more stages than layers: then the last holds the head alone, and if need be the first the
     * embedding alone.
     *
     * @throws IllegalArgumentException if the stages are more than the layers and two
     */
    public static StagePartition byFlops(GptShape shape, int stages) {
        int most = shape.layers() + 2;
        if (stages < 1 || stages > most) {
            throw new IllegalArgumentException(
                    "%d layers fill 1 to %d stages, got %d; try fewer stages or more layers"
                            .formatted(shape.layers(), most, stages));
        }
        return new StagePartition(new Search(shape, stages).best());
    }

    public int stages() {
        return layersPerStage.size();
    }

    /** Blocks of all stages. */
    public int layers() {
        return layersPerStage.stream().mapToInt(Integer::intValue).sum();
    }

    /** What stage {@code stage} of a model of this shape holds. */
    public StageRole role(int stage) {
        int first = 0;
        for (int s = 0; s < stage; s++) {
            first += layersPerStage.get(s);
        }
        return new StageRole(
                stage, first, layersPerStage.get(stage), stage == 0, stage == stages() - 1);
    }

    /** FLOPs per token of a stage, forward and backward. */
    public long flopsPerToken(GptShape shape, int stage) {
        StageRole role = role(stage);
        return role.layers() * shape.layerFlopsPerToken()
                + (role.first() ? shape.embeddingFlopsPerToken() : 0)
                + (role.last() ? shape.headFlopsPerToken() : 0);
    }

    /** Fills stages from the front, keeping for every (stage, layers so far) the best beginning. */
    private record Search(GptShape shape, int stages) {

        /** A filled beginning of the pipeline. */
        private record Beginning(List<Integer> layers, double most, double squares) {
            Beginning with(int count, double cost) {
                List<Integer> longer = new ArrayList<>(layers);
                longer.add(count);
                return new Beginning(longer, Math.max(most, cost), squares + cost * cost);
            }

            boolean beats(Beginning other) {
                return most < other.most || (most == other.most && squares < other.squares);
            }
        }

        List<Integer> best() {
            double most = fill(Double.POSITIVE_INFINITY).most();
            return fill(most).layers();
        }

        /** The best filling; below {@code bound} only the squares count. */
        private Beginning fill(double bound) {
            List<Beginning> row = new ArrayList<>();
            row.add(new Beginning(List.of(), 0, 0));
            for (int used = 1; used <= shape.layers(); used++) {
                row.add(new Beginning(List.of(), Double.POSITIVE_INFINITY, 0));
            }
            for (int stage = 0; stage < stages; stage++) {
                row = next(row, stage, bound);
            }
            return row.get(shape.layers());
        }

        private List<Beginning> next(List<Beginning> row, int stage, double bound) {
            List<Beginning> next = new ArrayList<>();
            for (int used = 0; used <= shape.layers(); used++) {
                Beginning best = new Beginning(List.of(), Double.POSITIVE_INFINITY, 0);
                for (int count = least(stage); count <= used; count++) {
                    Beginning candidate = row.get(used - count).with(count, cost(stage, count));
                    if (raised(candidate, bound).beats(raised(best, bound))) {
                        best = candidate;
                    }
                }
                next.add(best);
            }
            return next;
        }

        private int least(int stage) {
            boolean headAlone = stage == stages - 1 && stages > shape.layers();
            boolean embeddingAlone = stage == 0 && stages > shape.layers() + 1;
            return headAlone || embeddingAlone ? 0 : 1;
        }

        private static Beginning raised(Beginning b, double bound) {
            double most = b.most() <= bound && bound < Double.POSITIVE_INFINITY ? bound : b.most();
            return new Beginning(b.layers(), most, b.squares());
        }

        private double cost(int stage, int count) {
            return (double) count * shape.layerFlopsPerToken()
                    + (stage == 0 ? shape.embeddingFlopsPerToken() : 0)
                    + (stage == stages - 1 ? shape.headFlopsPerToken() : 0);
        }
    }
}
