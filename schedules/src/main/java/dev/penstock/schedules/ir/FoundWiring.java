package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Reads a wiring back from who runs what. A micro-batch is wired to the first rank that has a
 * forward of it, else to the first that computes anything of it; whatever other ranks do of it is
 * then on a wrong rank, which is for the judge to say. What nobody computes is wired to some peer
 * that is present.
 */
final class FoundWiring {
    private static final int NOBODY = -1;

    private final PipelineShape shape;
    private final Placement pipeline;
    private final List<Integer> absent;

    /** By stage, then micro-batch. */
    private final int[] byForward;

    private final int[] byOther;

    /**
     * @param pipeline of one peer
     * @param absent ranks that take no part; every stage has one that does
     */
    FoundWiring(PipelineShape shape, Placement pipeline, List<Integer> absent) {
        this.shape = shape;
        this.pipeline = pipeline;
        this.absent = absent;
        this.byForward = nobody();
        this.byOther = nobody();
    }

    private int[] nobody() {
        var peers = new int[shape.stages() * shape.microBatches()];
        Arrays.fill(peers, NOBODY);
        return peers;
    }

    /**
     * @param programs entry r is the program of rank r
     */
    Placement of(List<List<Op>> programs) {
        for (int rank = 0; rank < programs.size(); rank++) {
            if (!absent.contains(rank)) {
                find(rank, programs.get(rank));
            }
        }
        var table = new ArrayList<List<Integer>>();
        for (int m = 0; m < shape.microBatches(); m++) {
            var ofMicroBatch = new ArrayList<Integer>();
            for (int stage = 0; stage < shape.stages(); stage++) {
                ofMicroBatch.add(peer(m, stage));
            }
            table.add(ofMicroBatch);
        }
        return pipeline.wired(new Wiring(shape.pipelineRanks(), shape.peers(), table, absent));
    }

    private void find(int rank, List<Op> ops) {
        for (Op op : ops) {
            for (Op.Compute part : op.computations()) {
                WorkUnit unit = part.unit();
                if (shape.contains(unit)
                        && pipeline.rankOf(unit.stage()) == rank % shape.pipelineRanks()) {
                    int[] found = part instanceof Op.Forward ? byForward : byOther;
                    int place = place(unit.microBatch(), unit.stage());
                    if (found[place] == NOBODY) {
                        found[place] = rank / shape.pipelineRanks();
                    }
                }
            }
        }
    }

    private int place(int microBatch, int stage) {
        return stage * shape.microBatches() + microBatch;
    }

    private int peer(int microBatch, int stage) {
        int place = place(microBatch, stage);
        if (byForward[place] != NOBODY) {
            return byForward[place];
        }
        return byOther[place] != NOBODY ? byOther[place] : somebody(microBatch, stage);
    }

    private int somebody(int microBatch, int stage) {
        int peer = microBatch % shape.peers();
        while (absent.contains(peer * shape.pipelineRanks() + pipeline.rankOf(stage))) {
            peer = (peer + 1) % shape.peers();
        }
        return peer;
    }
}
