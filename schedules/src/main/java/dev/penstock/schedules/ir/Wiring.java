package dev.penstock.schedules.ir;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Which peer does which micro-batch at which stage. The peers of a stage are the replicas that hold
 * it: every peer has a whole pipeline, and a micro-batch may take its stages from several of them.
 * Micro-batches are numbered over all peers together. All slices of a micro-batch at a stage are
 * with one peer, and so are its forward and its backward.
 *
 * <pre>
 *   2 pipeline ranks, 2 peers: peer 0 is ranks 0 and 1, peer 1 is ranks 2 and 3
 *   rank 3 is absent
 *                  stage 0   stage 1
 *   micro-batch 0  peer 0    peer 0
 *   micro-batch 1  peer 1    peer 0
 * </pre>
 *
 * @param pipelineRanks ranks of one pipeline; rank r of peer p is rank p x pipelineRanks + r of all
 * @param peers replicas of every stage, at least 1
 * @param peerOf entry [m][s] is the peer of micro-batch m at stage s
 * @param absent ranks that take no part in the step, rising; a rank that is present and has no
 *     micro-batch still takes part in the sums of gradients
 */
public record Wiring(
        int pipelineRanks, int peers, List<List<Integer>> peerOf, List<Integer> absent) {
    public Wiring {
        if (pipelineRanks < 1 || peers < 1 || peerOf.isEmpty() || peerOf.getFirst().isEmpty()) {
            throw new IllegalArgumentException(
                    "a wiring needs at least 1 rank, peer, micro-batch and stage, got %d ranks, %d peers, %d micro-batches"
                            .formatted(pipelineRanks, peers, peerOf.size()));
        }
        peerOf = peerOf.stream().map(List::copyOf).toList();
        absent = absent.stream().sorted().distinct().toList();
        for (int m = 0; m < peerOf.size(); m++) {
            checkMicroBatch(m, peerOf.get(m), peerOf.getFirst().size(), peers);
        }
        for (int rank : absent) {
            if (rank < 0 || rank >= pipelineRanks * peers) {
                throw new IllegalArgumentException(
                        "ranks are 0 to %d, got the absent rank %d"
                                .formatted(pipelineRanks * peers - 1, rank));
            }
        }
    }

    private static void checkMicroBatch(
            int microBatch, List<Integer> peerOfStage, int stages, int peers) {
        if (peerOfStage.size() != stages) {
            throw new IllegalArgumentException(
                    "micro-batch 0 is wired at %d stages, micro-batch %d at %d"
                            .formatted(stages, microBatch, peerOfStage.size()));
        }
        for (int peer : peerOfStage) {
            if (peer < 0 || peer >= peers) {
                throw new IllegalArgumentException(
                        "peers are 0 to %d, got peer %d of micro-batch %d"
                                .formatted(peers - 1, peer, microBatch));
            }
        }
    }

    /** A wiring of peers that are all present. */
    public Wiring(int pipelineRanks, int peers, List<List<Integer>> peerOf) {
        this(pipelineRanks, peers, peerOf, List.of());
    }

    /** Ranks of all peers together, those that are absent included. */
    public int ranks() {
        return pipelineRanks * peers;
    }

    public int microBatches() {
        return peerOf.size();
    }

    public int stages() {
        return peerOf.getFirst().size();
    }

    /** The peer of a micro-batch at a stage. */
    public int peerOf(int microBatch, int stage) {
        return peerOf.get(microBatch).get(stage);
    }

    /** The number among all ranks of a peer's rank in its pipeline. */
    public int rankOf(int peer, int pipelineRank) {
        return peer * pipelineRanks + pipelineRank;
    }

    /** Which peer a rank belongs to. */
    public int peerOfRank(int rank) {
        return rank / pipelineRanks;
    }

    /** A rank's place in the pipeline of its peer. */
    public int pipelineRankOf(int rank) {
        return rank % pipelineRanks;
    }

    /** Whether a rank takes part in the step. */
    public boolean isPresent(int rank) {
        return !absent.contains(rank);
    }

    /** The micro-batches that a peer does at a stage, rising. */
    public List<Integer> microBatchesOf(int peer, int stage) {
        return IntStream.range(0, microBatches())
                .filter(microBatch -> peerOf(microBatch, stage) == peer)
                .boxed()
                .toList();
    }
}
