package dev.penstock.actors.rank;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What the gradients that a rank sends have lost by their encoding, to be added to those of the
 * next step at the same place: the same element of the same token of the same sequence of a step.
 * State of the run as parameters are, and saved with them.
 *
 * <pre>
 *   sent = encoded(gradient + lost)        lost of the next step = gradient + lost - decoded(sent)
 * </pre>
 *
 * <p>Like parameters, what was lost changes when a step is committed: a step that is not committed
 * may be left out or done again. A mirror gets what the step lost beside its gradients. One thread
 * at a time.
 */
final class EncodingLosses implements AutoCloseable {
    /** Of a run whose links keep nothing. */
    static final EncodingLosses NONE = new EncodingLosses();

    private final @Nullable DeviceScope scope;
    private final Map<Integer, Lost> ofStages = new TreeMap<>();

    private EncodingLosses() {
        scope = null;
    }

    private EncodingLosses(DeviceScope scope) {
        this.scope = scope;
    }

    /**
     * Allocates what stages of a rank have lost and fills it.
     *
     * @param scope the name of its memory
     * @param source where the stages have their first values from; what is not there is zero
     */
    static EncodingLosses build(
            RankPlace place,
            RunPlan plan,
            Collection<CodingState.OfStage> stages,
            String scope,
            Device device,
            StageBuilder source) {
        List<Integer> sending =
                sending(plan, stages.stream().map(CodingState.OfStage::stage).toList());
        if (sending.isEmpty()) {
            return NONE;
        }
        var losses = new EncodingLosses(device.memory().child(scope, Long.MAX_VALUE));
        try {
            for (CodingState.OfStage stage : stages) {
                if (sending.contains(stage.stage())) {
                    losses.add(stage, plan, place, device.kernels(), source);
                }
            }
            return losses;
        } catch (RuntimeException e) {
            losses.close();
            throw e;
        }
    }

    /** Returns those of some stages of a rank that send gradients of which something gets lost. */
    static List<Integer> sending(RunPlan plan, List<Integer> stages) {
        Placement placement = plan.training().placement();
        var topology = new Topology(plan.training(), 0);
        return stages.stream()
                .filter(placement::crossesBefore)
                .filter(topology::passesGradient)
                .filter(
                        stage ->
                                plan.codecs()
                                        .feedsBack(
                                                new ChannelKey(
                                                        FrameKind.GRADIENT, stage, stage - 1)))
                .toList();
    }

    private void add(
            CodingState.OfStage stage,
            RunPlan plan,
            RankPlace place,
            Kernels kernels,
            StageBuilder source) {
        int slices = plan.training().shape().slices();
        int[] columns = stage.columns(slices);
        int sequences = stage.boundaries().boundarySequences();
        int rows = plan.training().shape().microBatches() * sequences;
        List<Integer> whole = List.of(plan.grid().data() * rows, columns[slices]);
        var strip = new TensorPiece.Strip(place.data() * rows, rows, 0, columns[slices]);
        DeviceScope memory = requireNonNull(scope);
        var lost =
                new Lost(
                        name(stage, plan, place, whole),
                        TensorPiece.strips(whole, List.of(strip)),
                        sequences,
                        columns,
                        tensor(memory, stage.stage(), 0, rows, columns[slices]),
                        tensor(memory, stage.stage(), 1, rows, columns[slices]));
        kernels.zero(lost.pending);
        CodingState.fill(lost.named(), source, kernels);
        ofStages.put(stage.stage(), lost);
    }

    private static Tensor tensor(DeviceScope memory, int stage, int i, int rows, int columns) {
        return memory.tensor("stage %d lost %d".formatted(stage, i), DType.F32, rows, columns);
    }

    /** A run that is laid out otherwise has other places, and finds nothing by their name. */
    private static String name(
            CodingState.OfStage stage, RunPlan plan, RankPlace place, List<Integer> whole) {
        return "optimizer.lost.stage-%d.layer-%d.part-%d-of-%d.shard-%d-of-%d.%dx%d"
                .formatted(
                        stage.stage(),
                        stage.firstLayer(),
                        place.context(),
                        plan.grid().context(),
                        place.tensor(),
                        plan.grid().tensor(),
                        whole.getFirst(),
                        whole.getLast());
    }

    /** Adds what was lost at a unit's place to its gradient, which is encoded next. */
    void addTo(Tensor gradient, WorkUnit unit, Kernels kernels) {
        Lost lost = lost(unit);
        kernels.add(lost.at(lost.committed, unit), lost.bySequences(gradient));
        kernels.copy(lost.bySequences(gradient), lost.at(lost.pending, unit));
    }

    /**
     * Keeps what is lost.
     *
     * @param decoded what {@link #addTo} made, after encoding and decoding
     */
    void take(Tensor decoded, WorkUnit unit, Kernels kernels) {
        Lost lost = lost(unit);
        kernels.subtract(lost.bySequences(decoded), lost.at(lost.pending, unit));
    }

    private Lost lost(WorkUnit unit) {
        return requireNonNull(
                ofStages.get(unit.stage()), () -> "nothing is kept of what is sent for " + unit);
    }

    /** A step was committed, in which all units have sent. */
    void commit(Kernels kernels) {
        for (Lost lost : ofStages.values()) {
            kernels.copy(lost.pending, lost.committed);
        }
    }

    /** What a checkpoint of a stage has of this rank. */
    List<NamedTensor> state(int stage) {
        Lost lost = ofStages.get(stage);
        return lost == null ? List.of() : List.of(lost.named());
    }

    /** What the step under way makes of that. */
    List<NamedTensor> pending(int stage) {
        Lost lost = ofStages.get(stage);
        return lost == null
                ? List.of()
                : List.of(new NamedTensor(lost.name, lost.piece, lost.pending));
    }

    @Override
    public void close() {
        if (scope != null) {
            scope.close();
        }
    }

    /**
     * Of a stage: a row for each sequence of a step, in it the tokens of one slice after another.
     */
    private static final class Lost {
        private final String name;
        private final TensorPiece piece;
        private final int sequences;

        /** Where a slice begins in a row. */
        private final int[] columns;

        private final Tensor committed;
        private final Tensor pending;

        Lost(
                String name,
                TensorPiece piece,
                int sequences,
                int[] columns,
                Tensor committed,
                Tensor pending) {
            this.name = name;
            this.piece = piece;
            this.sequences = sequences;
            this.columns = columns;
            this.committed = committed;
            this.pending = pending;
        }

        NamedTensor named() {
            return new NamedTensor(name, piece, committed);
        }

        Tensor at(Tensor all, WorkUnit unit) {
            int first = columns[unit.slice()];
            return all.rows(unit.microBatch() * sequences, sequences)
                    .columns(first, columns[unit.slice() + 1] - first);
        }

        Tensor bySequences(Tensor unit) {
            return CodingState.bySequences(unit, sequences);
        }
    }
}
