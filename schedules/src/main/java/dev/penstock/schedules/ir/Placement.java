package dev.penstock.schedules.ir;

import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Which rank does which work. In one pipeline a stage has one rank; in a wired order every stage
 * has a rank in the pipeline of each peer, and the wiring says which of them does which
 * micro-batch.
 *
 * @param rankOfStage entry s is the rank of stage s in its pipeline
 * @param wiring of several peers; empty for one pipeline
 */
public record Placement(List<Integer> rankOfStage, Optional<Wiring> wiring) {
    public Placement {
        rankOfStage = List.copyOf(rankOfStage);
        // one peer is one pipeline, however it is written
        wiring = wiring.filter(wired -> wired.peers() > 1);
        if (wiring.isPresent()) {
            checkWiring(rankOfStage, wiring.get());
        }
    }

    private static void checkWiring(List<Integer> rankOfStage, Wiring wiring) {
        int stages = rankOfStage.size();
        if (wiring.stages() != stages) {
            throw new IllegalArgumentException(
                    "%d stages are placed, but micro-batches are wired at %d"
                            .formatted(stages, wiring.stages()));
        }
        for (int m = 0; m < wiring.microBatches() && !wiring.absent().isEmpty(); m++) {
            for (int stage = 0; stage < stages; stage++) {
                int rank = wiring.rankOf(wiring.peerOf(m, stage), rankOfStage.get(stage));
                if (!wiring.isPresent(rank)) {
                    throw new IllegalArgumentException(
                            "micro-batch %d is wired to rank %d at stage %d, which is absent"
                                    .formatted(m, rank, stage));
                }
            }
        }
    }

    /** Of one pipeline. */
    public Placement(List<Integer> rankOfStage) {
        this(rankOfStage, Optional.empty());
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

    /**
     * The same pipeline for each of several peers.
     *
     * @throws IllegalArgumentException if the wiring has other stages, or uses an absent rank
     */
    public Placement wired(Wiring peers) {
        return new Placement(rankOfStage, Optional.of(peers));
    }

    /** The rank of a stage in its pipeline; without a wiring that is the rank. */
    public int rankOf(int stage) {
        return rankOfStage.get(stage);
    }

    /** The rank that does a unit. */
    public int rankOf(WorkUnit unit) {
        return rankOf(unit.stage(), unit.microBatch());
    }

    private int rankOf(int stage, int microBatch) {
        int inPipeline = rankOfStage.get(stage);
        if (wiring.isEmpty()) {
            return inPipeline;
        }
        Wiring peers = wiring.get();
        return peers.rankOf(peers.peerOf(microBatch, stage), inPipeline);
    }

    /** The ranks that hold a stage and are present, rising. */
    public List<Integer> ranksOf(int stage) {
        if (wiring.isEmpty()) {
            return List.of(rankOf(stage));
        }
        Wiring peers = wiring.get();
        return IntStream.range(0, peers.peers())
                .map(peer -> peers.rankOf(peer, rankOf(stage)))
                .filter(peers::isPresent)
                .boxed()
                .toList();
    }

    /** Whether a rank is present and holds a stage. */
    public boolean holds(int rank, int stage) {
        if (wiring.isEmpty()) {
            return rankOf(stage) == rank;
        }
        Wiring peers = wiring.get();
        return peers.pipelineRankOf(rank) == rankOf(stage) && peers.isPresent(rank);
    }

    public int stages() {
        return rankOfStage.size();
    }

    /** The stages of a rank, rising: its chunk c is entry c. */
    public List<Integer> stagesOf(int rank) {
        int inPipeline = wiring.map(peers -> peers.pipelineRankOf(rank)).orElse(rank);
        return IntStream.range(0, stages()).filter(s -> rankOf(s) == inPipeline).boxed().toList();
    }

    /** Whether the stage's input comes from another rank of its pipeline. */
    public boolean crossesBefore(int stage) {
        return stage > 0 && rankOf(stage - 1) != rankOf(stage);
    }

    /** Whether the stage's output goes to another rank of its pipeline. */
    public boolean crossesAfter(int stage) {
        return stage < stages() - 1 && rankOf(stage) != rankOf(stage + 1);
    }

    /** Whether the unit's input comes from another rank. */
    public boolean crossesBefore(WorkUnit unit) {
        int stage = unit.stage();
        return wiring.isEmpty()
                ? crossesBefore(stage)
                : stage > 0
                        && rankOf(stage - 1, unit.microBatch()) != rankOf(stage, unit.microBatch());
    }

    /** Whether the unit's output goes to another rank. */
    public boolean crossesAfter(WorkUnit unit) {
        int stage = unit.stage();
        return wiring.isEmpty()
                ? crossesAfter(stage)
                : stage < stages() - 1
                        && rankOf(stage, unit.microBatch()) != rankOf(stage + 1, unit.microBatch());
    }

    /** The rank that sends what a channel carries. */
    public int senderOf(Channel channel) {
        int inPipeline = rankOf(channel.fromStage());
        return wiring.map(peers -> peers.rankOf(channel.fromPeer(), inPipeline)).orElse(inPipeline);
    }

    /** The rank that receives what a channel carries. */
    public int receiverOf(Channel channel) {
        int inPipeline = rankOf(channel.toStage());
        return wiring.map(peers -> peers.rankOf(channel.toPeer(), inPipeline)).orElse(inPipeline);
    }
}
