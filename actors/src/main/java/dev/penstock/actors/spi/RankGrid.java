package dev.penstock.actors.spi;

import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.stream.IntStream;

/**
 * How the ranks of a run divide its work. Tensor shards of a stage have neighbouring numbers, then
 * come the stages of a pipeline, then context parts, then replicas:
 *
 * <pre>
 *   2 stages x 2 tensor shards x 2 replicas
 *     replica 0: stage 0 on ranks 0 1, stage 1 on ranks 2 3
 *     replica 1: stage 0 on ranks 4 5, stage 1 on ranks 6 7
 * </pre>
 *
 * @param pipeline programs of the schedule
 * @param tensor shards of every stage
 * @param context parts of every sequence
 * @param data replicas of the whole
 */
public record RankGrid(int pipeline, int tensor, int context, int data) {
    public RankGrid {
        if (pipeline < 1 || tensor < 1 || context < 1 || data < 1) {
            throw new IllegalArgumentException(
                    "a grid has 1 rank or more in every direction, got %d x %d x %d x %d"
                            .formatted(pipeline, tensor, context, data));
        }
    }

    /** A pipeline alone. */
    public static RankGrid pipeline(int ranks) {
        return new RankGrid(ranks, 1, 1, 1);
    }

    /** Ranks altogether. */
    public int ranks() {
        return pipeline * tensor * context * data;
    }

    /** What a rank is. */
    public RankPlace placeOf(int rank) {
        return new RankPlace(
                rank / tensor % pipeline,
                rank % tensor,
                rank / (tensor * pipeline) % context,
                rank / (tensor * pipeline * context));
    }

    /** Who is at a place. */
    public int rankAt(RankPlace place) {
        return ((place.data() * context + place.context()) * pipeline + place.pipeline()) * tensor
                + place.tensor();
    }

    /** Which program of an order a rank runs: of a wired one, its own. */
    public int programOf(int rank, Schedule order) {
        return order.shape().peers() > 1 ? rank : placeOf(rank).pipeline();
    }

    /** Who runs another program of the schedule beside this rank. */
    public int sibling(int rank, int otherPipeline) {
        RankPlace place = placeOf(rank);
        return rankAt(new RankPlace(otherPipeline, place.tensor(), place.context(), place.data()));
    }

    /** The first rank of every pipeline, rising: all that share a pipeline share one of these. */
    public List<Integer> pipelines() {
        return IntStream.range(0, ranks())
                .filter(rank -> placeOf(rank).pipeline() == 0)
                .boxed()
                .toList();
    }

    /** The tensor shards of this rank's stage, in order. */
    public List<Integer> tensorGroup(int rank) {
        RankPlace p = placeOf(rank);
        return IntStream.range(0, tensor)
                .map(t -> rankAt(new RankPlace(p.pipeline(), t, p.context(), p.data())))
                .boxed()
                .toList();
    }

    /** The ranks that hold the parts of this rank's sequences, in order. */
    public List<Integer> contextGroup(int rank) {
        RankPlace p = placeOf(rank);
        return IntStream.range(0, context)
                .map(c -> rankAt(new RankPlace(p.pipeline(), p.tensor(), c, p.data())))
                .boxed()
                .toList();
    }

    /** Everybody who holds the parameters of this rank: context parts of all replicas. */
    public List<Integer> replicaGroup(int rank) {
        RankPlace p = placeOf(rank);
        return IntStream.range(0, data * context)
                .map(i -> rankAt(new RankPlace(p.pipeline(), p.tensor(), i % context, i / context)))
                .boxed()
                .toList();
    }

    /** Everybody who runs this rank's program, rising. */
    public List<Integer> sameProgram(int rank) {
        int program = placeOf(rank).pipeline();
        return IntStream.range(0, ranks())
                .filter(other -> placeOf(other).pipeline() == program)
                .boxed()
                .toList();
    }

    /** Whether there is anything but a pipeline. */
    public boolean isPipelineAlone() {
        return ranks() == pipeline;
    }
}
