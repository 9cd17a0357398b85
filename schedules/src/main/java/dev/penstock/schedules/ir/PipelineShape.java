package dev.penstock.schedules.ir;

import java.util.Collections;
import java.util.List;

/**
 * The size of a pipeline and of one step; in a wired order of one pipeline per peer.
 *
 * @param ranks pipeline workers, at least 1; those of all peers together
 * @param chunks stages per rank, at least 1
 * @param microBatches micro-batches of a step, at least 1
 * @param sliceLengths relative or absolute (tokens) length of every token slice of a sequence,
 *     first slice first; one entry means that sequences are not cut
 * @param peers replicas of every stage whose micro-batches one order wires to each other; 1 for one
 *     pipeline
 */
public record PipelineShape(
        int ranks, int chunks, int microBatches, List<Integer> sliceLengths, int peers) {
    /** The most work units (stages x micro-batches x slices) of a step: {@value}. */
    public static final int MAX_UNITS = 1 << 26;

    public PipelineShape {
        if (ranks < 1 || chunks < 1 || microBatches < 1 || sliceLengths.isEmpty()) {
            throw new IllegalArgumentException(
                    "a pipeline needs at least 1 rank, chunk, micro-batch and slice, got %d, %d, %d, %d"
                            .formatted(ranks, chunks, microBatches, sliceLengths.size()));
        }
        if (peers < 1 || ranks % peers != 0) {
            throw new IllegalArgumentException(
                    "every peer has as many ranks, got %d ranks of %d peers"
                            .formatted(ranks, peers));
        }
        int depth = ranks / peers;
        double units = (double) depth * chunks * microBatches * sliceLengths.size();
        if (units > MAX_UNITS) {
            throw new IllegalArgumentException(
                    "%d ranks x %d chunks x %d micro-batches x %d slices are more than %d units of work"
                            .formatted(
                                    ranks, chunks, microBatches, sliceLengths.size(), MAX_UNITS));
        }
        sliceLengths = List.copyOf(sliceLengths);
        if (sliceLengths.stream().anyMatch(length -> length < 1)) {
            throw new IllegalArgumentException(
                    "every slice needs a length of at least 1, got " + sliceLengths);
        }
    }

    /** Of one pipeline. */
    public PipelineShape(int ranks, int chunks, int microBatches, List<Integer> sliceLengths) {
        this(ranks, chunks, microBatches, sliceLengths, 1);
    }

    /** One stage per rank, whole sequences. */
    public static PipelineShape of(int ranks, int microBatches) {
        return of(ranks, microBatches, 1);
    }

    /** One stage per rank, {@code slices} equal slices of length 1. */
    public static PipelineShape of(int ranks, int microBatches, int slices) {
        return new PipelineShape(ranks, 1, microBatches, Collections.nCopies(slices, 1));
    }

    /**
     * A pipeline like this one for each peer; the micro-batches are then those of all peers
     * together.
     */
    public PipelineShape withPeers(int count) {
        return new PipelineShape(
                pipelineRanks() * count, chunks, microBatches, sliceLengths, count);
    }

    /** Ranks of the pipeline of one peer. */
    public int pipelineRanks() {
        return ranks / peers;
    }

    public int stages() {
        return pipelineRanks() * chunks;
    }

    public int slices() {
        return sliceLengths.size();
    }

    /** All units of a step. */
    public int units() {
        return stages() * unitsPerStage();
    }

    /** Units of one stage: micro-batches x slices. */
    public int unitsPerStage() {
        return microBatches * slices();
    }

    /** Whether this shape has such a unit. */
    public boolean contains(WorkUnit unit) {
        return unit.stage() < stages()
                && unit.microBatch() < microBatches
                && unit.slice() < slices();
    }

    /**
     * A dense number of a unit that this shape contains: by stage, then micro-batch, then slice.
     */
    public int indexOf(WorkUnit unit) {
        return (unit.stage() * microBatches + unit.microBatch()) * slices() + unit.slice();
    }

    /** A dense number of a stage and the peer of a rank; the stage where there is one peer. */
    public int indexOf(int stage, int rank) {
        return stage * peers + rank / pipelineRanks();
    }

    /** How many such numbers there are. */
    public int stagesOfPeers() {
        return stages() * peers;
    }

    /** The unit of a dense number; inverse of {@link #indexOf(WorkUnit)}. */
    public WorkUnit unitAt(int index) {
        int inStage = index % unitsPerStage();
        return new WorkUnit(index / unitsPerStage(), inStage / slices(), inStage % slices());
    }
}
