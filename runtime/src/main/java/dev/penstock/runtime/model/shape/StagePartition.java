package dev.penstock.runtime.model.shape;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/**
 * The number of transformer blocks that each stage holds. Stage 0 also has the embedding, and the
 * last stage the final norm and the head.
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
    public static StagePartition given(ModelShape shape, List<Integer> layersPerStage) {
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
     * are more stages than layers: then the last holds the head alone, and if necessary the first
     * the embedding alone.
     *
     * @throws IllegalArgumentException if there are more than two stages beyond the number of
     *     layers
     */
    public static StagePartition byFlops(ModelShape shape, int stages) {
        return byFlops(new TrainedParts(shape, FineTuning.FULL), stages);
    }

    /**
     * Same as {@link #byFlops(ModelShape, int)} of a model of which not everything is trained: each
     * part costs what its forward and its backwards do.
     */
    public static StagePartition byFlops(TrainedParts parts, int stages) {
        requireFilled(parts.shape(), stages);
        double[] even = new double[stages];
        Arrays.fill(even, 1);
        return bySpeed(parts, even);
    }

    /**
     * Same as {@link #byFlops(TrainedParts, int)} on stages of which each computes at a speed of
     * its own: the one that takes longest takes as little as it can.
     *
     * @param speeds entry s is that of stage s, in any unit, above 0
     */
    public static StagePartition bySpeed(TrainedParts parts, double[] speeds) {
        List<Integer> any = Collections.nCopies(speeds.length, parts.shape().layers());
        return bySpeed(parts, speeds, any).orElseThrow();
    }

    /**
     * Same as {@link #bySpeed(TrainedParts, double[])} on stages that have no room for all blocks.
     *
     * @param most entry s is the most blocks that stage s may hold
     * @return empty if they cannot hold the model together
     */
    public static Optional<StagePartition> bySpeed(
            TrainedParts parts, double[] speeds, List<Integer> most) {
        requireFilled(parts.shape(), speeds.length);
        var search =
                new Search(new TrainedFlops(parts), parts.shape().layers(), speeds.clone(), most);
        return search.best().map(StagePartition::new);
    }

    private static void requireFilled(ModelShape shape, int stages) {
        int most = shape.layers() + 2;
        if (stages < 1 || stages > most) {
            throw new IllegalArgumentException(
                    "%d layers can fill 1 to %d stages, got %d; try fewer stages or more layers"
                            .formatted(shape.layers(), most, stages));
        }
    }

    /** Returns the FLOPs per token of each stage, as far as its parts are trained. */
    public double[] flopsPerToken(TrainedParts parts) {
        double[] even = new double[stages()];
        Arrays.fill(even, 1);
        var search = new Search(new TrainedFlops(parts), layers(), even, layersPerStage);
        double[] flops = new double[stages()];
        int before = 0;
        for (int stage = 0; stage < flops.length; stage++) {
            flops[stage] = search.stageCost(stage, before, layersPerStage.get(stage));
            before += layersPerStage.get(stage);
        }
        return flops;
    }

    public int stages() {
        return layersPerStage.size();
    }

    /** Returns the number of blocks of all stages. */
    public int layers() {
        return layersPerStage.stream().mapToInt(Integer::intValue).sum();
    }

    /** Returns what stage {@code stage} of a model of this shape holds; its only tensor shard. */
    public StageRole role(int stage) {
        int first = 0;
        for (int s = 0; s < stage; s++) {
            first += layersPerStage.get(s);
        }
        return new StageRole(
                stage, first, layersPerStage.get(stage), stage == 0, stage == stages() - 1, 0, 1);
    }

    /** Returns the FLOPs per token of a stage, forward and backward. */
    public long flopsPerToken(ModelShape shape, int stage) {
        StageRole role = role(stage);
        long blocks = 0;
        for (int i = 0; i < role.layers(); i++) {
            blocks += shape.layerFlopsPerToken(role.firstLayer() + i);
        }
        return blocks
                + (role.first() ? shape.embeddingFlopsPerToken() : 0)
                + (role.last() ? shape.headFlopsPerToken() : 0);
    }

    /** Returns the FLOPs of a sequence of this many tokens in a stage, forward and backward. */
    public long flops(ModelShape shape, int stage, int tokens) {
        StageRole role = role(stage);
        long flops =
                tokens
                        * ((role.first() ? shape.embeddingFlopsPerToken() : 0)
                                + (role.last() ? shape.headFlopsPerToken() : 0));
        for (int i = 0; i < role.layers(); i++) {
            flops += shape.layerFlops(role.firstLayer() + i, tokens);
        }
        return flops;
    }

    /** Fills stages from the front, keeping for every (stage, layers so far) the best beginning. */
    private static final class Search {
        private final TrainedFlops flops;
        private final int layers;
        private final double[] speeds;
        private final List<Integer> most;
        private final int stages;

        Search(TrainedFlops flops, int layers, double[] speeds, List<Integer> most) {
            this.flops = flops;
            this.layers = layers;
            this.speeds = speeds;
            this.most = most;
            this.stages = speeds.length;
        }

        /**
         * A filled beginning of the pipeline: the cost of its busiest stage, and the sum of all
         * costs squared.
         */
        private record Beginning(List<Integer> layers, double most, double squares) {
            static final Beginning EMPTY = new Beginning(List.of(), 0, 0);
            static final Beginning IMPOSSIBLE =
                    new Beginning(List.of(), Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY);

            Beginning with(int count, double cost) {
                List<Integer> longer = new ArrayList<>(layers);
                longer.add(count);
                return new Beginning(longer, Math.max(most, cost), squares + cost * cost);
            }
        }

        Optional<List<Integer>> best() {
            Beginning fastest = fill(Double.POSITIVE_INFINITY, Beginning::most);
            return fastest.layers().isEmpty()
                    ? Optional.empty()
                    : Optional.of(fill(fastest.most(), Beginning::squares).layers());
        }

        /**
         * Returns the filling with the least {@code cost} among those whose busiest stage keeps the
         * bound.
         */
        private Beginning fill(double bound, ToDoubleFunction<Beginning> cost) {
            List<Beginning> row =
                    new ArrayList<>(Collections.nCopies(layers + 1, Beginning.IMPOSSIBLE));
            row.set(0, Beginning.EMPTY);
            for (int stage = 0; stage < stages; stage++) {
                row = next(row, stage, bound, cost);
            }
            return row.getLast();
        }

        private List<Beginning> next(
                List<Beginning> row, int stage, double bound, ToDoubleFunction<Beginning> cost) {
            List<Beginning> next = new ArrayList<>();
            for (int used = 0; used <= layers; used++) {
                Beginning best = Beginning.IMPOSSIBLE;
                int atMost = Math.min(used, most.get(stage));
                for (int count = least(stage); count <= atMost; count++) {
                    Beginning candidate =
                            row.get(used - count)
                                    .with(count, stageCost(stage, used - count, count));
                    if (candidate.most() <= bound
                            && cost.applyAsDouble(candidate) < cost.applyAsDouble(best)) {
                        best = candidate;
                    }
                }
                next.add(best);
            }
            return next;
        }

        private int least(int stage) {
            boolean headAlone = stage == stages - 1 && stages > layers;
            boolean embeddingAlone = stage == 0 && stages > layers + 1;
            return headAlone || embeddingAlone ? 0 : 1;
        }

        private double stageCost(int stage, int firstLayer, int count) {
            double work =
                    (double) flops.perToken(firstLayer, count)
                            + (stage == 0 ? flops.embedding() : 0)
                            + (stage == stages - 1 ? flops.head() : 0);
            return work / speeds[stage];
        }
    }
}
