package dev.penstock.actors.spi;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.schedules.ir.Schedule;
import java.util.Collections;
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
 * Stages may have different numbers of shards, of which each is a multiple of all smaller ones; a
 * tensor then travels from a shard to those that have its place among fewer, or more:
 *
 * <pre>
 *   stage 0 on rank 0, stage 1 on ranks 1 2      rank 0 sends activations to both;
 *                                                their gradients are equal, rank 1 sends its own
 * </pre>
 *
 * @param pipeline programs of the schedule
 * @param tensor the most shards that a stage has
 * @param context parts of every sequence
 * @param data replicas of the whole
 * @param shards of the stages of each program; empty where all have as many, {@code tensor}
 * @param mesh how the shards of every stage lie; {@link TensorMesh#NONE} for a line
 */
public record RankGrid(
        int pipeline, int tensor, int context, int data, List<Integer> shards, TensorMesh mesh) {
    public RankGrid {
        if (pipeline < 1 || tensor < 1 || context < 1 || data < 1) {
            throw new IllegalArgumentException(
                    "a grid has 1 rank or more in every direction, got %d x %d x %d x %d"
                            .formatted(pipeline, tensor, context, data));
        }
        boolean equal = shards.size() == pipeline && shards.stream().allMatch(n -> n == tensor);
        shards = equal ? List.of() : List.copyOf(shards);
        boolean suits =
                shards.isEmpty()
                        || (shards.size() == pipeline
                                && Collections.max(shards) == tensor
                                && areMultiples(shards));
        if (!suits) {
            throw new IllegalArgumentException(
                    "expected shards of %d stages, at most %d, of which one number is a multiple of the other, got %s"
                            .formatted(pipeline, tensor, shards));
        }
        if (mesh.isThere() && (mesh.shards() != tensor || !shards.isEmpty())) {
            throw new IllegalArgumentException(
                    "expected %d tensor shards of every stage in the mesh %s, got %d%s"
                            .formatted(mesh.shards(), mesh, tensor, shards));
        }
    }

    /** Shards on lines. */
    public RankGrid(int pipeline, int tensor, int context, int data, List<Integer> shards) {
        this(pipeline, tensor, context, data, shards, TensorMesh.NONE);
    }

    /** Whether of each two of these counts one is a multiple of the other. */
    public static boolean areMultiples(List<Integer> counts) {
        int least = 1;
        for (int count : counts.stream().sorted().toList()) {
            if (count < 1 || count % least != 0) {
                return false;
            }
            least = count;
        }
        return true;
    }

    /** Stages with equal numbers of shards. */
    public RankGrid(int pipeline, int tensor, int context, int data) {
        this(pipeline, tensor, context, data, List.of());
    }

    /** A pipeline alone. */
    public static RankGrid pipeline(int ranks) {
        return new RankGrid(ranks, 1, 1, 1);
    }

    /** Shards of the stages of a program. */
    public int shardsOf(int program) {
        return isUneven() ? shards.get(program) : tensor;
    }

    /** Whether stages have different numbers of shards. */
    public boolean isUneven() {
        return !shards.isEmpty();
    }

    /** Ranks of one pipeline. */
    private int wide() {
        return before(pipeline);
    }

    /** Ranks of a pipeline that come before those of a program. */
    private int before(int program) {
        if (!isUneven()) {
            return program * tensor;
        }
        int ranks = 0;
        for (int p = 0; p < program; p++) {
            ranks += shards.get(p);
        }
        return ranks;
    }

    /** Ranks altogether. */
    public int ranks() {
        return wide() * context * data;
    }

    /** What a rank is. */
    public RankPlace placeOf(int rank) {
        int wide = wide();
        int shard = rank % wide;
        int program = isUneven() ? 0 : shard / tensor;
        while (shard >= before(program + 1)) {
            program++;
        }
        return new RankPlace(
                program, shard - before(program), rank / wide % context, rank / (wide * context));
    }

    /** Who is at a place. */
    public int rankAt(RankPlace place) {
        return (place.data() * context + place.context()) * wide()
                + before(place.pipeline())
                + place.tensor();
    }

    /** Which program of an order a rank runs: of a wired one, its own. */
    public int programOf(int rank, Schedule order) {
        return order.shape().peers() > 1 ? rank : placeOf(rank).pipeline();
    }

    /**
     * Who runs another program of the schedule beside this rank: the shard that has its place, of
     * several the first.
     */
    public int sibling(int rank, int otherPipeline) {
        return siblings(rank, otherPipeline).getFirst();
    }

    /**
     * The shards of another program that have this rank's place: one where that has as many or
     * fewer, otherwise neighbours, rising.
     */
    public List<Integer> siblings(int rank, int otherPipeline) {
        RankPlace place = placeOf(rank);
        int own = shardsOf(place.pipeline());
        int there = shardsOf(otherPipeline);
        int first = place.tensor() * there / own;
        return IntStream.range(first, first + Math.max(1, there / own))
                .map(t -> rankAt(new RankPlace(otherPipeline, t, place.context(), place.data())))
                .boxed()
                .toList();
    }

    /**
     * Who receives the boundary tensors that this rank makes for another program: nobody where a
     * neighbour that makes the same sends them, several where these are divided further.
     */
    public List<Integer> receivers(int rank, int otherPipeline) {
        return siblings(rank, otherPipeline).stream()
                .filter(other -> sibling(other, placeOf(rank).pipeline()) == rank)
                .toList();
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
        return IntStream.range(0, shardsOf(p.pipeline()))
                .map(t -> rankAt(new RankPlace(p.pipeline(), t, p.context(), p.data())))
                .boxed()
                .toList();
    }

    /**
     * The tensor shards on this rank's line of an axis of the mesh, in order; itself without a
     * mesh.
     */
    public List<Integer> meshGroup(int rank, int axis) {
        if (!mesh.isThere()) {
            return List.of(rank);
        }
        RankPlace p = placeOf(rank);
        return mesh.line(p.tensor(), axis).stream()
                .map(t -> rankAt(new RankPlace(p.pipeline(), t, p.context(), p.data())))
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
