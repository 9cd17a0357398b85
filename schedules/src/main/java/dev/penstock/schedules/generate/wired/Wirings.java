package dev.penstock.schedules.generate.wired;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Wiring;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Rules for who does what in a wired order. All of them are functions of their arguments: ties go
 * to the lower number.
 *
 * @param shape with its peers; the micro-batches are those of all peers together
 * @param pipeline where the stages of one peer are
 * @param nanosOfRank entry r is how long rank r takes for a micro-batch at one of its stages,
 *     forward and backward; only the ratios matter
 */
public record Wirings(PipelineShape shape, Placement pipeline, List<Long> nanosOfRank) {
    public Wirings {
        nanosOfRank = List.copyOf(nanosOfRank);
        if (nanosOfRank.size() != shape.ranks() || nanosOfRank.stream().anyMatch(n -> n < 1)) {
            throw new IllegalArgumentException(
                    "each of %d ranks takes 1 or more nanoseconds for a micro-batch, got %s"
                            .formatted(shape.ranks(), nanosOfRank));
        }
        if (pipeline.wiring().isPresent() || pipeline.stages() != shape.stages()) {
            throw new IllegalArgumentException(
                    "expected where the %d stages of one pipeline are, got %s"
                            .formatted(shape.stages(), pipeline));
        }
    }

    /** Equal ranks, stages in loop placement. */
    public static Wirings equal(PipelineShape shape) {
        return new Wirings(
                shape,
                Placement.loop(shape.pipelineRanks(), shape.chunks()),
                Collections.nCopies(shape.ranks(), 1L));
    }

    /**
     * The same for ranks whose ops take so long.
     *
     * @param ofRank entry r is of rank r
     */
    public Wirings withCosts(List<OpCosts> ofRank) {
        return withNanos(ofRank.stream().map(Wirings::nanosOfMicroBatch).toList());
    }

    private static long nanosOfMicroBatch(OpCosts of) {
        long nanos = of.forwardNanos() + of.backwardInputNanos() + of.backwardWeightNanos();
        return Math.max(1, nanos);
    }

    /** The same for ranks of other speeds. */
    public Wirings withNanos(List<Long> ofRank) {
        return new Wirings(shape, pipeline, ofRank);
    }

    /**
     * Every replica does its own micro-batches: those of replica 0 come first.
     *
     * @throws IllegalArgumentException unless every replica has as many
     */
    public Placement straight() {
        if (shape.microBatches() % shape.peers() != 0) {
            throw new IllegalArgumentException(
                    "every one of %d replicas has as many micro-batches of its own, got %d together"
                            .formatted(shape.peers(), shape.microBatches()));
        }
        int each = shape.microBatches() / shape.peers();
        return wired(
                IntStream.range(0, shape.microBatches())
                        .mapToObj(m -> Collections.nCopies(shape.stages(), m / each))
                        .toList(),
                List.of());
    }

    /** {@link #balanced(Collection)} with everybody there. */
    public Placement balanced() {
        return balanced(List.of());
    }

    /**
     * Every stage hands its micro-batches, in their order, to the peer that would be done first
     * with one more (the interleaved weighted round robin of SWARM, arXiv 2301.11913). Equal peers
     * that are all there take turns, each pipeline for itself.
     *
     * @param absent ranks that take no part
     * @throws IllegalArgumentException if nobody is left for a stage
     */
    public Placement balanced(Collection<Integer> absent) {
        List<PriorityQueue<Load>> queues = new ArrayList<>();
        for (int stage = 0; stage < shape.stages(); stage++) {
            var queue = new PriorityQueue<Load>();
            for (int peer : peersOf(stage, absent)) {
                queue.add(new Load(nanos(peer, stage), peer));
            }
            queues.add(queue);
        }
        var table = new ArrayList<List<Integer>>();
        for (int m = 0; m < shape.microBatches(); m++) {
            var ofMicroBatch = new ArrayList<Integer>();
            for (int stage = 0; stage < shape.stages(); stage++) {
                Load least = queues.get(stage).remove();
                queues.get(stage).add(least.plus(nanos(least.peer, stage)));
                ofMicroBatch.add(least.peer);
            }
            table.add(ofMicroBatch);
        }
        return wired(table, absent);
    }

    /** Every micro-batch takes each stage from a peer drawn by the seed: for tests. */
    public Placement random(long seed) {
        var table = new ArrayList<List<Integer>>();
        for (int m = 0; m < shape.microBatches(); m++) {
            int microBatch = m;
            table.add(
                    IntStream.range(0, shape.stages())
                            .mapToObj(stage -> drawn(seed, microBatch, stage))
                            .toList());
        }
        return wired(table, List.of());
    }

    /** SplitMix64 of the place. */
    private int drawn(long seed, int microBatch, int stage) {
        long place = (long) microBatch * shape.stages() + stage + 1;
        long bits = seed + place * 0x9e3779b97f4a7c15L;
        bits = (bits ^ bits >>> 30) * 0xbf58476d1ce4e5b9L;
        bits = (bits ^ bits >>> 27) * 0x94d049bb133111ebL;
        return (int) Long.remainderUnsigned(bits ^ bits >>> 31, shape.peers());
    }

    /**
     * A rank is gone: its micro-batches go to the peers that hold the same stage, each to the one
     * that is done first with it (ReCycle, arXiv 2405.14009). Everything else stays.
     *
     * @throws IllegalArgumentException if it is the last rank that holds a stage, or gone already
     */
    public Placement without(Placement wired, int rank) {
        Wiring before = wiring(wired);
        requireRank(rank);
        if (!before.isPresent(rank)) {
            throw new IllegalArgumentException("rank %d is absent already".formatted(rank));
        }
        var absent = new TreeSet<>(before.absent());
        absent.add(rank);
        List<List<Integer>> table = copied(before);
        int peer = before.peerOfRank(rank);
        for (int stage : pipeline.stagesOf(before.pipelineRankOf(rank))) {
            var queue = new PriorityQueue<Load>();
            for (int other : peersOf(stage, absent)) {
                queue.add(load(before, other, stage).plus(nanos(other, stage)));
            }
            for (int m : before.microBatchesOf(peer, stage)) {
                Load least = queue.remove();
                table.get(m).set(stage, least.peer);
                queue.add(least.plus(nanos(least.peer, stage)));
            }
        }
        return wired(table, absent);
    }

    /**
     * A rank is back, or new: of each of its stages it takes micro-batches, one at a time from the
     * peer with the most to do, as long as it is done with them earlier than that peer would be.
     * Those come first that its peer has at most other stages, so that a rank that is back gets
     * those that it had. Everything else stays.
     *
     * @throws IllegalArgumentException if it is there already
     */
    public Placement rejoined(Placement wired, int rank) {
        Wiring before = wiring(wired);
        requireRank(rank);
        if (before.isPresent(rank)) {
            throw new IllegalArgumentException("rank %d is not absent".formatted(rank));
        }
        var absent = new TreeSet<>(before.absent());
        absent.remove(rank);
        Wiring now = before;
        for (int stage : pipeline.stagesOf(before.pipelineRankOf(rank))) {
            now = levelled(now, before.peerOfRank(rank), stage, absent);
        }
        return wired(now.peerOf(), absent);
    }

    private Wiring levelled(Wiring wiring, int joiner, int stage, Collection<Integer> absent) {
        Wiring now = wiring;
        while (true) {
            Wiring at = now;
            Load most =
                    peersOf(stage, absent).stream()
                            .filter(peer -> peer != joiner)
                            .map(peer -> load(at, peer, stage))
                            .max(
                                    Comparator.comparingLong(Load::nanos)
                                            .thenComparingInt(load -> -load.peer))
                            .orElseThrow();
            if (most.nanos <= load(at, joiner, stage).nanos + nanos(joiner, stage)) {
                return now;
            }
            int moved =
                    Collections.max(
                            at.microBatchesOf(most.peer, stage),
                            Comparator.comparingInt((Integer m) -> stagesAt(at, m, joiner))
                                    .thenComparingInt(m -> m));
            List<List<Integer>> table = copied(at);
            table.get(moved).set(stage, joiner);
            now = new Wiring(at.pipelineRanks(), at.peers(), table, at.absent());
        }
    }

    private static int stagesAt(Wiring wiring, int microBatch, int peer) {
        return Collections.frequency(wiring.peerOf().get(microBatch), peer);
    }

    private Load load(Wiring wiring, int peer, int stage) {
        return new Load(wiring.microBatchesOf(peer, stage).size() * nanos(peer, stage), peer);
    }

    private long nanos(int peer, int stage) {
        return nanosOfRank.get(rank(peer, stage));
    }

    private int rank(int peer, int stage) {
        return peer * shape.pipelineRanks() + pipeline.rankOf(stage);
    }

    private List<Integer> peersOf(int stage, Collection<Integer> absent) {
        List<Integer> present =
                IntStream.range(0, shape.peers())
                        .filter(peer -> !absent.contains(rank(peer, stage)))
                        .boxed()
                        .toList();
        if (present.isEmpty()) {
            throw new IllegalArgumentException(
                    "nobody is left for stage %d: ranks %s are absent".formatted(stage, absent));
        }
        return present;
    }

    private void requireRank(int rank) {
        if (rank < 0 || rank >= shape.ranks()) {
            throw new IllegalArgumentException(
                    "ranks are 0 to %d, got %d".formatted(shape.ranks() - 1, rank));
        }
    }

    private static Wiring wiring(Placement wired) {
        return wired.wiring()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "expected a wired order, got one pipeline; there is nobody else who holds its stages"));
    }

    private static List<List<Integer>> copied(Wiring wiring) {
        List<List<Integer>> table = new ArrayList<>();
        wiring.peerOf().forEach(ofMicroBatch -> table.add(new ArrayList<>(ofMicroBatch)));
        return table;
    }

    private Placement wired(List<List<Integer>> table, Collection<Integer> absent) {
        return pipeline.wired(
                new Wiring(shape.pipelineRanks(), shape.peers(), table, List.copyOf(absent)));
    }

    /** What a peer has to do at a stage. */
    private record Load(long nanos, int peer) implements Comparable<Load> {
        Load plus(long more) {
            return new Load(nanos + more, peer);
        }

        @Override
        public int compareTo(Load other) {
            int byLoad = Long.compare(nanos, other.nanos);
            return byLoad != 0 ? byLoad : Integer.compare(peer, other.peer);
        }
    }
}
