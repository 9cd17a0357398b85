package dev.penstock.actors.rank;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.TrainedState;
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
     * Allocates what the links of a rank's stages keep and fills it.
     *
     * @param place of the rank
     * @param scope the name of the memory
     * @param source where the stages have their first values from; what is not there is zero
     */
    static CodingState build(
            RankPlace place,
            RunPlan plan,
            Collection<OfStage> stages,
            String scope,
            Device device,
            StageBuilder source) {
        EncodingLosses losses = EncodingLosses.build(place, plan, stages, scope, device, source);
        try {
            return new CodingState(
                    losses, ActivationDeltas.build(place, plan, stages, scope, device, source));
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
    void commit(Kernels kernels) {
        losses.commit(kernels);
        deltas.commit();
    }

    /** All units of a step have sent and received, which mirrors are about to be told. */
    void note() {
        deltas.note();
    }

    /** A stage's state with that of its ends of links, as a mirror has both. */
    TrainedState with(int stage, TrainedState trained) {
        return new WithLinks(stage, trained, this);
    }

    private record WithLinks(int stage, TrainedState trained, CodingState links)
            implements TrainedState {
        @Override
        public List<NamedTensor> gradients() {
            return all(
                    trained.gradients(),
                    links.losses.pending(stage),
                    links.deltas.ofStage(stage).flatMap(KnownRows::pending));
        }

        @Override
        public List<NamedTensor> tensors() {
            return all(
                    trained.tensors(),
                    links.losses.state(stage),
                    links.deltas.ofStage(stage).map(KnownRows::named));
        }

        private static List<NamedTensor> all(
                List<NamedTensor> stage, List<NamedTensor> lost, Stream<NamedTensor> known) {
            return Stream.concat(Stream.concat(stage.stream(), lost.stream()), known).toList();
        }

        @Override
        public void replaced() {
            trained.replaced();
            links.deltas.replaced();
        }
    }

    /** What a checkpoint of a stage has of this rank. */
    List<NamedTensor> state(int stage) {
        return Stream.concat(losses.state(stage).stream(), deltas.state(stage).stream()).toList();
    }

    /**
     * A stage whose ends of coded links keep something: a rank's own one, or one that is mirrored.
     *
     * @param stage global index
     * @param layers from the first one on
     * @param boundaries has boundary tensors of the same sizes: the stage itself, or for a mirror
     *     one of the stages of the rank that holds it, since the tensors between all stages are
     *     alike
     */
    record OfStage(int stage, int firstLayer, int layers, StageProgram boundaries) {
        static OfStage of(StageProgram own) {
            return new OfStage(own.stage(), own.firstLayer(), own.layers(), own);
        }

        static OfStage of(StageMirror mirror, StageProgram holders) {
            return new OfStage(mirror.stage(), mirror.firstLayer(), mirror.layers(), holders);
        }

        /**
         * Where each slice begins in the row of a sequence's tokens, and where the last one ends.
         */
        int[] columns(int slices) {
            int[] columns = new int[slices + 1];
            for (int slice = 0; slice < slices; slice++) {
                int elements = boundaries.boundaryRows(slice) * boundaries.boundaryColumns();
                columns[slice + 1] = columns[slice] + elements / boundaries.boundarySequences();
            }
            return columns;
        }
    }

    @Override
    public void close() {
        deltas.close();
        losses.close();
    }
}
