package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.StepShapes;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The memory that a stage keeps between ops, in slots allocated once: activations per unit;
 * queries, keys and values per micro-batch; and, where sequences are cut, their gradients per
 * micro-batch whose backward is in progress.
 */
public final class StageStash {
    private final BatchShape batch;
    private final StepShapes shapes;
    private final List<SlotPool<UnitSlot>> unitsBySlice;
    private final SlotPool<MicroBatchSlot> queryKeyValues;
    private final SlotPool<MicroBatchSlot> gradients;
    private final RecomputedBlocks recomputed;
    private final HostLink link;
    private final SlotPool<HostSlot> away;
    private final boolean forwardOnly;

    /** Nanoseconds of copies, which others make, and of waits for them. */
    private final AtomicLong toHostNanos = new AtomicLong();

    private final AtomicLong backNanos = new AtomicLong();
    private long waitNanos;

    /** The number of units whose backward is still to come, by micro-batch. */
    private final int[] units;

    /**
     * Allocates all slots of a stage's budget.
     *
     * @param shapes of the current step
     * @param rooms of the rank
     */
    public StageStash(
            StepShapes shapes,
            StageScopes scopes,
            GptSettings settings,
            StageRole role,
            StageBudget budget,
            RecomputedBlocks recomputed,
            UnitRooms rooms) {
        this.shapes = shapes;
        link = rooms.link();
        batch = shapes.whole();
        this.recomputed = recomputed;
        forwardOnly = budget.forwardOnly();
        units = new int[batch.microBatches()];
        unitsBySlice = unitPools(scopes.activations(), settings, role, budget, recomputed, rooms);
        ShardShape shape = settings.shape(role);
        queryKeyValues =
                microBatchPool(
                        scopes.keyValues(),
                        "queries, keys and values",
                        role,
                        batch.sliced() ? budget.microBatches() : budget.units(),
                        settings.keptQueryKeyValues(),
                        shape,
                        settings.stateRows(),
                        recomputed,
                        batch.sliced() ? UnitRooms.apart() : rooms);
        gradients =
                microBatchPool(
                        scopes.keyValues(),
                        "gradients of queries, keys and values",
                        role,
                        batch.sliced() ? budget.backwardMicroBatches() : 0,
                        DType.F32,
                        shape,
                        0,
                        recomputed,
                        UnitRooms.apart());
        away = hostPool(scopes.host(), budget);
    }

    /** One pool for all slices, or one for each where that is smaller. */
    private static List<SlotPool<UnitSlot>> unitPools(
            DeviceScope scope,
            GptSettings settings,
            StageRole role,
            StageBudget budget,
            RecomputedBlocks recomputed,
            UnitRooms rooms) {
        BatchShape batch = settings.batchOfPart();
        if (budget.unitsPerSlice().size() != batch.slices()) {
            throw new IllegalArgumentException(
                    "the budget of stage %d is for %d slices, but sequences are cut into %d"
                            .formatted(
                                    role.stage(), budget.unitsPerSlice().size(), batch.slices()));
        }
        long shared = (long) budget.units() * batch.largestRows();
        long apart =
                IntStream.range(0, batch.slices())
                        .mapToLong(s -> (long) budget.unitsPerSlice().get(s) * batch.rows(s))
                        .sum();
        if (shared <= apart) {
            SlotPool<UnitSlot> pool =
                    unitPool(
                            scope,
                            settings,
                            role,
                            budget,
                            recomputed,
                            batch.sliced() ? UnitRooms.apart() : rooms,
                            budget.units(),
                            batch.largestRows());
            return IntStream.range(0, batch.slices()).mapToObj(s -> pool).toList();
        }
        return IntStream.range(0, batch.slices())
                .mapToObj(
                        s ->
                                unitPool(
                                        scope,
                                        settings,
                                        role,
                                        budget,
                                        recomputed,
                                        UnitRooms.apart(),
                                        budget.unitsPerSlice().get(s),
                                        batch.rows(s)))
                .toList();
    }

    private static SlotPool<UnitSlot> unitPool(
            DeviceScope scope,
            GptSettings settings,
            StageRole role,
            StageBudget budget,
            RecomputedBlocks recomputed,
            UnitRooms rooms,
            int count,
            int rows) {
        BatchShape batch = settings.batchOfPart();
        ShardShape shape = settings.shape(role);
        Function<Carver, UnitActivations> cut =
                carver ->
                        UnitActivations.carve(
                                carver, shape, role, rows, budget.split(), recomputed);
        var kind =
                new UnitRooms.Kind(
                        "activations of a unit of %d rows".formatted(rows),
                        List.of(Carver.bytes(cut)));
        UnitRooms.Rooms taken = rooms.shareable(scope, owner(role), kind, count);
        List<UnitSlot> slots =
                taken.all().stream()
                        .map(
                                room ->
                                        new UnitSlot(
                                                Carver.cut(room.buffers().getFirst(), cut),
                                                shape,
                                                room))
                        .toList();
        return new SlotPool<>(
                "activations of units", slots, batch.microBatches() * batch.slices(), taken.idle());
    }

    private static String owner(StageRole role) {
        return " of stage " + role.stage();
    }

    /**
     * One pool of slots.
     *
     * @param stateRows of the states of layers with a retention; 0 where slots have none
     */
    private SlotPool<MicroBatchSlot> microBatchPool(
            DeviceScope scope,
            String content,
            StageRole role,
            int count,
            DType type,
            ShardShape shape,
            int stateRows,
            RecomputedBlocks recomputed,
            UnitRooms rooms) {
        int rows = batch.microBatchRows();
        List<TensorPlace> places = new ArrayList<>();
        for (int layer = 0; layer < role.layers(); layer++) {
            boolean again = recomputed.contains(layer);
            ShardShape own = shape.like(role.firstLayer() + layer);
            places.add(
                    new TensorPlace(
                            type,
                            rows,
                            own.queryKeyValueColumns(),
                            again ? recomputed.queryKeyValues() : null));
            places.add(
                    new TensorPlace(
                            DType.F32,
                            stateRows,
                            stateRows == 0 ? 0 : own.stateColumns(),
                            again ? recomputed.states() : null));
        }
        var kind =
                new UnitRooms.Kind(
                        content + " of a micro-batch",
                        places.stream()
                                .filter(place -> place.shared == null && place.columns > 0)
                                .map(TensorPlace::bytes)
                                .toList());
        UnitRooms.Rooms taken = rooms.shareable(scope, owner(role), kind, count);
        List<MicroBatchSlot> slots = new ArrayList<>();
        for (UnitRooms.Room room : taken.all()) {
            Iterator<DeviceBuffer> next = room.buffers().iterator();
            List<Tensor> layers = new ArrayList<>();
            Map<Integer, Tensor> states = new TreeMap<>();
            for (int i = 0; i < places.size(); i += 2) {
                layers.add(places.get(i).tensor(next));
                if (places.get(i + 1).columns > 0) {
                    states.put(i / 2, places.get(i + 1).tensor(next));
                }
            }
            slots.add(new MicroBatchSlot(layers, states, room));
        }
        return new SlotPool<>(content, slots, batch.microBatches(), taken.idle());
    }

    /**
     * Where a slot has a tensor.
     *
     * @param columns 0 where there is none
     * @param shared what all slots have in its place, of a recomputed block; else null
     */
    private record TensorPlace(DType type, int rows, int columns, @Nullable Tensor shared) {
        long bytes() {
            return (long) rows * columns * type.bytes();
        }

        /** Takes the next of a room's buffers, unless it is shared. */
        Tensor tensor(Iterator<DeviceBuffer> next) {
            return shared != null
                    ? Workspace.narrow(shared, columns)
                    : Tensor.of(next.next(), type, rows, columns);
        }
    }

    /** Returns whether units end with their forward, in training as well. */
    public boolean isForwardOnly() {
        return forwardOnly;
    }

    /** Takes activations for a unit's forward. */
    public UnitActivations takeUnit(WorkUnit unit) {
        units[unit.microBatch()]++;
        if (unit.slice() == 0) {
            queryKeyValues.take(unit.microBatch());
        }
        return lend(unit);
    }

    /**
     * Frees a unit's activations until {@link #takeAgain}. Later slices read the keys and values of
     * earlier ones, so these stay where sequences are cut.
     */
    public void park(WorkUnit unit) {
        unitsBySlice.get(unit.slice()).free(key(unit));
        if (!batch.sliced()) {
            queryKeyValues.free(unit.microBatch());
        }
    }

    /** Takes activations for a parked unit again. */
    public UnitActivations takeAgain(WorkUnit unit) {
        if (!batch.sliced()) {
            queryKeyValues.take(unit.microBatch());
        }
        return lend(unit);
    }

    private UnitActivations lend(WorkUnit unit) {
        unitsBySlice.get(unit.slice()).take(key(unit));
        return unit(unit);
    }

    /** Returns a unit's activations, once they are here and nobody else's are on their way out. */
    public UnitActivations unit(WorkUnit unit) {
        UnitSlot slot = unitsBySlice.get(unit.slice()).get(key(unit));
        waitNanos += slot.underWay().await();
        if (!batch.sliced()) {
            waitNanos += queryKeyValues.get(unit.microBatch()).underWay().await();
        }
        return slot.of(rows(unit));
    }

    /** Nanoseconds that copies to the host have taken so far. */
    public long toHostNanos() {
        return toHostNanos.get();
    }

    /** Nanoseconds that copies back have taken so far. */
    public long backNanos() {
        return backNanos.get();
    }

    /** Nanoseconds that those who use activations have waited for copies so far. */
    public long waitNanos() {
        return waitNanos;
    }

    /** Room on the host for as many units as are ever away, each as large as the largest. */
    private SlotPool<HostSlot> hostPool(DeviceScope host, StageBudget budget) {
        List<HostSlot> slots = new ArrayList<>();
        for (int i = 0; i < budget.away(); i++) {
            String name = "activations of a unit, slot %d".formatted(i);
            List<DeviceBuffer> ofMicroBatch =
                    batch.sliced()
                            ? List.of()
                            : queryKeyValues.first().buffers().stream()
                                    .map(
                                            buffer ->
                                                    host.allocate(
                                                            "queries, keys and values, " + name,
                                                            buffer.bytes()))
                                    .toList();
            slots.add(new HostSlot(host.allocate(name, largestUnitBytes()), ofMicroBatch));
        }
        return new SlotPool<>(
                "activations on the host", slots, batch.microBatches() * batch.slices());
    }

    private long largestUnitBytes() {
        return unitsBySlice.stream()
                .mapToLong(pool -> pool.first().buffer().bytes())
                .max()
                .orElseThrow();
    }

    /** Starts to bring a unit's activations to the host; others may take their place. */
    public void offload(WorkUnit unit) {
        UnitSlot slot = unitsBySlice.get(unit.slice()).get(key(unit));
        HostSlot host = away.take(key(unit));
        CompletableFuture<Void> copy;
        if (batch.sliced()) {
            copy = link.copy(toHostNanos, () -> host.from(slot.buffer(), List.of()));
        } else {
            MicroBatchSlot ofMicroBatch = queryKeyValues.get(unit.microBatch());
            copy = link.copy(toHostNanos, () -> host.from(slot.buffer(), ofMicroBatch.buffers()));
            ofMicroBatch.underWay().set(copy);
            queryKeyValues.freeLast(unit.microBatch());
        }
        slot.underWay().set(copy);
        unitsBySlice.get(unit.slice()).freeLast(key(unit));
    }

    /**
     * Starts to bring a unit's activations back. Copies run one after another: what leaves its new
     * place has left by then, and what next comes to its place on the host comes later.
     */
    public void reload(WorkUnit unit) {
        UnitSlot slot = unitsBySlice.get(unit.slice()).take(key(unit));
        HostSlot host = away.get(key(unit));
        CompletableFuture<Void> copy;
        if (batch.sliced()) {
            copy = link.copy(backNanos, () -> host.to(slot.buffer(), List.of()));
        } else {
            MicroBatchSlot ofMicroBatch = queryKeyValues.take(unit.microBatch());
            copy = link.copy(backNanos, () -> host.to(slot.buffer(), ofMicroBatch.buffers()));
            ofMicroBatch.underWay().set(copy);
        }
        slot.underWay().set(copy);
        away.free(key(unit));
    }

    /** Takes room for what the first part of a backward computes again, until {@link #freeUnit}. */
    public void keepRecomputed(WorkUnit unit) {
        SlotPool<KeptBlocks> kept = recomputed.kept();
        if (kept != null) {
            kept.take(key(unit));
        }
    }

    /** Returns a block's activations for its backward, recomputed if necessary. */
    public LayerActivations layer(WorkUnit unit, int block) {
        KeptBlocks kept = kept(unit, block);
        return kept == null ? unit(unit).layers().get(block) : kept.layer(rows(unit), block);
    }

    /** Same as {@link #layer}, for queries, keys and values of the micro-batch. */
    public Tensor queryKeyValues(WorkUnit unit, int block) {
        KeptBlocks kept = kept(unit, block);
        Tensor own = kept == null ? null : kept.queryKeyValues().get(block);
        return own == null
                ? queryKeyValues(unit).get(block)
                : own.rows(0, shapes.of(unit.microBatch()).microBatchRows());
    }

    private @Nullable KeptBlocks kept(WorkUnit unit, int block) {
        SlotPool<KeptBlocks> kept = recomputed.kept();
        return kept != null && recomputed.runsAgain(block) && kept.lends(key(unit))
                ? kept.get(key(unit))
                : null;
    }

    public void freeUnit(WorkUnit unit) {
        SlotPool<KeptBlocks> kept = recomputed.kept();
        if (kept != null && kept.lends(key(unit))) {
            kept.free(key(unit));
        }
        unitsBySlice.get(unit.slice()).free(key(unit));
        units[unit.microBatch()]--;
    }

    /** Returns whether every backward of the micro-batch is done. */
    public boolean isFree(int microBatch) {
        return units[microBatch] == 0;
    }

    /**
     * Returns the queries, keys and values of a micro-batch, per layer; taken by the first slice's
     * forward.
     */
    public List<Tensor> queryKeyValues(WorkUnit unit) {
        return ofMicroBatch(queryKeyValues.get(unit.microBatch()), unit);
    }

    /**
     * Returns the states of a retention of a unit: before each of its blocks of the grid, and
     * behind the last. Slices have the one between them in common.
     */
    public Tensor states(WorkUnit unit, int block) {
        BatchShape ofMicroBatch = shapes.of(unit.microBatch());
        int first = ofMicroBatch.blocksBefore(unit.slice());
        int end = ofMicroBatch.blocksBefore(unit.slice() + 1);
        int sequences = ofMicroBatch.sequences();
        return allStates(unit, block).rows(first * sequences, (end - first + 1) * sequences);
    }

    /** Returns the states of a retention of all units of a micro-batch. */
    public Tensor allStates(WorkUnit unit, int block) {
        return queryKeyValues.get(unit.microBatch()).states(block);
    }

    public void freeQueryKeyValues(WorkUnit unit) {
        queryKeyValues.free(unit.microBatch());
    }

    /**
     * Returns the gradients of a micro-batch, per layer, not zeroed; only where sequences are cut.
     */
    public List<Tensor> takeGradients(WorkUnit unit) {
        return ofMicroBatch(gradients.take(unit.microBatch()), unit);
    }

    public List<Tensor> gradients(WorkUnit unit) {
        return ofMicroBatch(gradients.get(unit.microBatch()), unit);
    }

    public void freeGradients(WorkUnit unit) {
        gradients.free(unit.microBatch());
    }

    /** Forgets everything: the previous step was abandoned. */
    public void clear() {
        settle();
        away.freeAll();
        unitsBySlice.forEach(SlotPool::freeAll);
        queryKeyValues.freeAll();
        gradients.freeAll();
        SlotPool<KeptBlocks> kept = recomputed.kept();
        if (kept != null) {
            kept.freeAll();
        }
        Arrays.fill(units, 0);
    }

    /** Waits until nothing of any stage of the rank is on its way to the host or back. */
    public void settle() {
        link.settle();
    }

    private List<Tensor> ofMicroBatch(MicroBatchSlot slot, WorkUnit unit) {
        return slot.of(shapes.of(unit.microBatch()).microBatchRows());
    }

    private int rows(WorkUnit unit) {
        return shapes.of(unit.microBatch()).rows(unit.slice());
    }

    private int key(WorkUnit unit) {
        return unit.microBatch() * batch.slices() + unit.slice();
    }
}
