package dev.penstock.schedules.plan.work;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Placement;
import java.util.Collections;
import java.util.List;

/**
 * How long the ops of every stage take, ZeRO's traffic per unit included.
 *
 * <p>ZeRO 3 gathers a stage's parameters block after block for every forward and every backward,
 * beside the computation of the block before; ZeRO 2 and 3 scatter the gradients in the same way
 * after every backward. So an op takes the longer of both.
 */
public final class StageTimes {
    /**
     * What computations do beside computing.
     *
     * @param gather whether they gather the parameters that they need
     * @param scatter whether backwards sum their gradients
     * @param rerun entry s: blocks of stage s whose forward runs again inside a backward, one by
     *     one
     */
    record Inside(boolean gather, boolean scatter, List<Integer> rerun) {
        Inside {
            rerun = List.copyOf(rerun);
        }

        /** As plans count. */
        static Inside of(ZeroStage zero, int stages) {
            return new Inside(
                    zero.dividesParameters(),
                    zero.dividesGradients(),
                    Collections.nCopies(stages, 0));
        }
    }

    private final long[][] forward;
    private final long[][] backward;
    private final long[][] backwardInput;
    private final long[][] backwardWeight;
    private final long[][] sums;
    private final List<Integer> partition;

    public StageTimes(
            PipelineWork work, List<Integer> partition, Placement placement, ZeroStage zero) {
        this(work, partition, placement, Inside.of(zero, partition.size()));
    }

    public StageTimes(
            PipelineWork work, List<Integer> partition, Placement placement, Inside inside) {
        this.partition = List.copyOf(partition);
        int stages = partition.size();
        int slices = work.slices();
        this.forward = new long[stages][slices];
        this.backward = new long[stages][slices];
        this.backwardInput = new long[stages][slices];
        this.backwardWeight = new long[stages][slices];
        this.sums = new long[stages][slices];
        TrainingBytes bytes = work.request().bytes();
        int replicas = work.layout().data();
        for (int stage = 0; stage < stages; stage++) {
            boolean first = stage == 0;
            boolean last = stage == stages - 1;
            int blocks = partition.get(stage);
            int on = placement.rankOf(stage);
            PipelineWork.RankWork rank = work.ranks().get(on);
            long parameters = work.stageParameters(on, blocks, first, last);
            Link link = rank.hardware().dataLink();
            long gather =
                    inside.gather() ? oneWay(link, replicas, parameters * bytes.parameter()) : 0;
            long trained = work.trainedParameters(on, blocks, first, last);
            long scatter =
                    inside.scatter() ? oneWay(link, replicas, trained * bytes.gradient()) : 0;
            for (int slice = 0; slice < slices; slice++) {
                BlockWork block = rank.slices().get(slice);
                long f =
                        blocks * block.forward()
                                + (first ? block.embedding() : 0)
                                + (last ? block.head() : 0);
                long i =
                        blocks * block.backwardInput()
                                + inside.rerun().get(stage) * block.forward()
                                + (last ? block.head() : 0);
                long w =
                        blocks * block.backwardWeight()
                                + (first ? block.embeddingWeight() : 0)
                                + (last ? block.headWeight() : 0);
                sums[stage][slice] = blocks * block.sums();
                forward[stage][slice] = Math.max(f, gather);
                backward[stage][slice] = Math.max(i + w, gather + scatter);
                backwardInput[stage][slice] = Math.max(i, gather);
                backwardWeight[stage][slice] = Math.max(w, scatter);
            }
        }
    }

    private static long oneWay(Link link, int replicas, long bytes) {
        return Math.round(Collectives.oneWayNanos(link, replicas, (double) bytes));
    }

    /** Of a stage's blocks, how many are these layers: 0 to 1. */
    double share(int stage, LayerRange layers) {
        int blocks = partition.get(stage);
        int end = (int) Math.min(blocks, layers.last() + 1L);
        return layers.isAll()
                ? 1
                : Math.max(0, end - layers.first()) / (double) Math.max(1, blocks);
    }

    public long forward(int stage, int slice) {
        return forward[stage][slice];
    }

    /** A full backward. */
    public long backward(int stage, int slice) {
        return backward[stage][slice];
    }

    public long backwardInput(int stage, int slice) {
        return backwardInput[stage][slice];
    }

    public long backwardWeight(int stage, int slice) {
        return backwardWeight[stage][slice];
    }

    /** What the sums of tensor shards are of a forward, and of a backward's first half. */
    long sums(int stage, int slice) {
        return sums[stage][slice];
    }
}
