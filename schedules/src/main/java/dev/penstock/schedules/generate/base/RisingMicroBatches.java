package dev.penstock.schedules.generate.base;

import dev.penstock.schedules.ir.Op;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Writes a rank's order by chunk alone: each pass of a chunk takes the micro-batches as they come.
 * An op of a micro-batch beyond the last is left out, which is how an order for more micro-batches
 * is cut down to fewer.
 */
public final class RisingMicroBatches {
    private record Waiting(int chunk, int microBatch) {}

    private final Pipeline.Program program;
    private final int microBatches;
    private final int[] forwards = new int[2];
    private final int[] backwards = new int[2];

    /** Split backwards whose second part is to come, oldest first. */
    private final ArrayDeque<Waiting> weights = new ArrayDeque<>();

    public RisingMicroBatches(Pipeline.Program program, int microBatches) {
        this.program = program;
        this.microBatches = microBatches;
    }

    public void forward(int chunk) {
        int microBatch = forwards[chunk]++;
        if (microBatch < microBatches) {
            program.forward(chunk, microBatch, 0);
        }
    }

    public void backward(int chunk) {
        int microBatch = backwards[chunk]++;
        if (microBatch < microBatches) {
            program.backward(chunk, microBatch, 0);
        }
    }

    public void backwardInput(int chunk) {
        int microBatch = backwards[chunk]++;
        weights.add(new Waiting(chunk, microBatch));
        if (microBatch < microBatches) {
            program.backwardInput(chunk, microBatch, 0);
        }
    }

    /** The oldest of a chunk that waits. */
    public void backwardWeight(int chunk) {
        for (Iterator<Waiting> waiting = weights.iterator(); waiting.hasNext(); ) {
            Waiting next = waiting.next();
            if (next.chunk == chunk) {
                waiting.remove();
                write(next);
                return;
            }
        }
        throw new IllegalStateException("no backward of chunk " + chunk + " waits for its weights");
    }

    /** The oldest of both chunks that waits. */
    public void oldestBackwardWeight() {
        write(weights.remove());
    }

    /** One chunk's forward with a full backward of the same or the other. */
    public void overlapped(int forwardChunk, int backwardChunk) {
        overlapped(
                nextForward(forwardChunk),
                new Op.Backward(program.unit(backwardChunk, backwards[backwardChunk]++, 0)));
    }

    /** The next two forwards of a chunk, beside each other. */
    public void overlappedForwards(int chunk) {
        overlapped(nextForward(chunk), nextForward(chunk));
    }

    /** A chunk's forward with its backward for the input; the weights wait. */
    public void overlappedInput(int chunk) {
        int microBatch = backwards[chunk]++;
        weights.add(new Waiting(chunk, microBatch));
        overlapped(nextForward(chunk), new Op.BackwardInput(program.unit(chunk, microBatch, 0)));
    }

    /** A chunk's forward with the oldest of both chunks' backwards for the weights that waits. */
    public void overlappedWeight(int chunk) {
        Waiting oldest = weights.remove();
        overlapped(
                nextForward(chunk),
                new Op.BackwardWeight(program.unit(oldest.chunk, oldest.microBatch, 0)));
    }

    private Op.Forward nextForward(int chunk) {
        return new Op.Forward(program.unit(chunk, forwards[chunk]++, 0));
    }

    /** Of a pair with a micro-batch beyond the last, the other half stays. */
    private void overlapped(Op.Forward forward, Op.Compute partner) {
        List<Op.Compute> left =
                Stream.of(forward, partner)
                        .filter(half -> half.unit().microBatch() < microBatches)
                        .toList();
        if (left.size() == 2) {
            program.overlapped(forward, partner);
        } else {
            left.forEach(program::compute);
        }
    }

    private void write(Waiting weight) {
        if (weight.microBatch < microBatches) {
            program.backwardWeight(weight.chunk, weight.microBatch, 0);
        }
    }
}
