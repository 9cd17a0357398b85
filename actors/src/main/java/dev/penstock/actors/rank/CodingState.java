package dev.penstock.actors.rank;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collection;
import java.util.List;
import java.util.stream.Stream;

/**
 * What a rank's ends of coded links keep from step to step. State of the run as parameters are:
 * saved with them, and changed when a step is committed. The shard's thread only.
 *
 * @param losses what the gradients that it sends have lost
 * @param deltas what is known of the rows whose activations it sends and receives
 */
record CodingState(EncodingLosses losses, ActivationDeltas deltas) implements AutoCloseable {
    /** Of a run whose links keep nothing. */
    static final CodingState NONE = new CodingState(EncodingLosses.NONE, ActivationDeltas.NONE);

    /**
     * Allocates what a rank's links keep and fills it.
     *
     * @param source where the stages have their first values from; what is not there is zero
     */
    static CodingState build(
            int rank,
            RunPlan plan,
            Collection<StageProgram> stages,
            Device device,
            StageBuilder source) {
        EncodingLosses losses = EncodingLosses.build(rank, plan, stages, device, source);
        try {
            return new CodingState(
                    losses, ActivationDeltas.build(rank, plan, stages, device, source));
        } catch (RuntimeException e) {
            losses.close();
            throw e;
        }
    }

    /** Gives a tensor the values under its name; zero if there are none. */
    static void fill(NamedTensor named, StageBuilder source, Kernels kernels) {
        Tensor tensor = named.tensor();
        kernels.zero(tensor);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment first = arena.allocate(tensor.bytes(), Long.BYTES);
            if (source.fill(named.name(), named.piece(), first)) {
                tensor.write(first);
            }
        }
    }

    /** Returns the elements of a unit's boundary tensor, a row for each sequence. */
    static Tensor bySequences(Tensor unit, int sequences) {
        int width = unit.rows() * unit.columns() / sequences;
        return new Tensor(unit.buffer(), unit.offsetBytes(), unit.type(), sequences, width, width);
    }

    /** A step was committed, in which all units have sent and received. */
    void commit() {
        losses.commit();
        deltas.commit();
    }

    /** What a checkpoint of a stage has of this rank. */
    List<NamedTensor> state(int stage) {
        return Stream.concat(losses.state(stage).stream(), deltas.state(stage).stream()).toList();
    }

    @Override
    public void close() {
        deltas.close();
        losses.close();
    }
}
