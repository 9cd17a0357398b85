package dev.penstock.actors.rank;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankGrid;
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
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What both ends of a link know of the rows of the data that come again, so that only the delta
 * from their last visit is coded (AQ-SGD: Wang et al., arXiv 2206.01299, algorithm 1).
 *
 * <pre>
 *   sent = encoded(activation - known)      at both ends: known, and the receiver's input,
 *                                                         = known + decoded(sent)
 * </pre>
 *
 * <p>Before its first visit zero is known of a row, which then travels as it would without. Both
 * ends do the same arithmetic on the same coded bytes, so they know the same to the bit; the
 * receiving one is saved, for both. Keyed by the layer before which a link lies. The shard's thread
 * only.
 */
final class ActivationDeltas implements AutoCloseable {
    /** Of a run whose links carry activations themselves. */
    static final ActivationDeltas NONE = new ActivationDeltas(null);

    private final @Nullable DeviceScope scope;
    private final Map<Integer, KnownRows> sent = new TreeMap<>();
    private final Map<Integer, KnownRows> received = new TreeMap<>();

    private ActivationDeltas(@Nullable DeviceScope scope) {
        this.scope = scope;
    }

    /**
     * Allocates what a rank's ends of links know and fills it.
     *
     * @param scope the name of its memory
     * @param source where the stages have their first values from; what is not there is zero
     */
    static ActivationDeltas build(
            RankPlace place,
            RunPlan plan,
            Collection<CodingState.OfStage> stages,
            String scope,
            Device device,
            StageBuilder source) {
        if (ends(plan, stages.stream().map(CodingState.OfStage::stage).toList()) == 0) {
            return NONE;
        }
        DeviceScope memory = device.memory().child(scope, Long.MAX_VALUE);
        var deltas = new ActivationDeltas(memory);
        try {
            for (CodingState.OfStage stage : stages) {
                int first = stage.firstLayer();
                int next = first + stage.layers();
                if (receives(plan, stage.stage())) {
                    deltas.received.put(
                            stage.stage(),
                            known(memory, stage, first, plan, place, device.kernels(), source));
                }
                if (sends(plan, stage.stage())) {
                    deltas.sent.put(
                            stage.stage(),
                            known(memory, stage, next, plan, place, device.kernels(), source));
                }
            }
            return deltas;
        } catch (RuntimeException e) {
            deltas.close();
            throw e;
        }
    }

    /** Returns how many ends of links that carry deltas some stages of a rank have. */
    static int ends(RunPlan plan, List<Integer> stages) {
        int ends = 0;
        for (int stage : stages) {
            ends += receives(plan, stage) ? 1 : 0;
            ends += sends(plan, stage) ? 1 : 0;
        }
        return ends;
    }

    private static boolean sends(RunPlan plan, int stage) {
        return stage + 1 < plan.training().placement().stages() && receives(plan, stage + 1);
    }

    private static boolean receives(RunPlan plan, int stage) {
        Placement placement = plan.training().placement();
        var channel = new ChannelKey(FrameKind.ACTIVATION, stage - 1, stage);
        return placement.crossesBefore(stage) && plan.codecs().carriesDeltas(channel);
    }

    /**
     * @param layer before which the link lies
     */
    private static KnownRows known(
            DeviceScope memory,
            CodingState.OfStage stage,
            int layer,
            RunPlan plan,
            RankPlace place,
            Kernels kernels,
            StageBuilder source) {
        int slices = plan.training().shape().slices();
        int columns = stage.columns(slices)[slices];
        int rows = plan.codecs().deltaRows();
        int inStep =
                plan.training().shape().microBatches() * stage.boundaries().boundarySequences();
        Tensor committed = memory.tensor("known " + layer, DType.F32, rows, columns);
        Tensor visited = memory.tensor("visited " + layer, DType.F32, inStep, columns);
        Tensor places =
                memory.tensor("places " + layer, DType.F32, inStep, KnownRows.PLACE_COLUMNS);
        List<Integer> whole = List.of(plan.grid().data() * rows, columns);
        var strip = new TensorPiece.Strip(place.data() * rows, rows, 0, columns);
        String name = name(layer, plan.grid(), place, whole);
        var named = new NamedTensor(name, TensorPiece.strips(whole, List.of(strip)), committed);
        CodingState.fill(named, source, kernels);
        return new KnownRows(stage.boundaries(), slices, named, visited, places, kernels);
    }

    /** A run with other rows, tokens, shards or replicas finds nothing by their name. */
    private static String name(int layer, RankGrid grid, RankPlace place, List<Integer> whole) {
        return "optimizer.known.layer-%d.shard-%d-of-%d.%dx%d"
                .formatted(layer, place.tensor(), grid.tensor(), whole.getFirst(), whole.getLast());
    }

    /** Returns what is known of what a unit's stage sends. */
    KnownRows sent(WorkUnit unit) {
        return known(sent, unit);
    }

    /** Returns what is known of what a unit's stage receives. */
    KnownRows received(WorkUnit unit) {
        return known(received, unit);
    }

    private static KnownRows known(Map<Integer, KnownRows> ofStages, WorkUnit unit) {
        return requireNonNull(
                ofStages.get(unit.stage()), () -> "nothing is known of rows for " + unit);
    }

    /** A step was committed, in which all units have sent and received. */
    void commit() {
        all().forEach(KnownRows::commit);
    }

    /** See {@link KnownRows#note}. */
    void note() {
        all().forEach(KnownRows::note);
    }

    /** See {@link KnownRows#replaced}. */
    void replaced() {
        all().forEach(KnownRows::replaced);
    }

    private Stream<KnownRows> all() {
        return Stream.concat(sent.values().stream(), received.values().stream());
    }

    /** What is known at both ends that a stage has: of what it receives and of what it sends. */
    Stream<KnownRows> ofStage(int stage) {
        return Stream.of(received, sent)
                .filter(ends -> ends.containsKey(stage))
                .map(ends -> ends.get(stage));
    }

    /** What a checkpoint of a stage has of this rank: what the stage receives. */
    List<NamedTensor> state(int stage) {
        KnownRows known = received.get(stage);
        return known == null ? List.of() : List.of(known.named());
    }

    @Override
    public void close() {
        if (scope != null) {
            scope.close();
        }
    }
}
