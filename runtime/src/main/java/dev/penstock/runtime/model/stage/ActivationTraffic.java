package dev.penstock.runtime.model.stage;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.layers.LossHead;
import dev.penstock.runtime.model.layers.NormGradients;
import dev.penstock.runtime.model.layers.TensorShards;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.ParameterAllocator;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.HeadChunk;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.List;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * The bytes that a rank sends to other stages, context parts and tensor shards in a training step,
 * calculated from sizes alone.
 */
public final class ActivationTraffic {
    private final GptSettings settings;
    private final BatchShape batch;
    private final TrainedParts trained;
    private final RankPlace place;
    private final List<Op> ops;
    private final long ringFromBytes;
    private final ChannelCodecs codecs;

    /**
     * @param place of the rank
     * @param ops of its program
     * @param ringFromBytes size from which tensor shards use a ring
     * @param codecs in which form boundary tensors travel
     */
    public ActivationTraffic(
            GptSettings settings,
            RankPlace place,
            List<Op> ops,
            long ringFromBytes,
            ChannelCodecs codecs) {
        this.settings = settings;
        this.batch = settings.batchOfPart();
        this.trained = settings.trained();
        this.place = place;
        this.ops = List.copyOf(ops);
        this.ringFromBytes = ringFromBytes;
        this.codecs = codecs;
    }

    /**
     * Returns the bytes of activations sent to other ranks, stage by stage.
     *
     * @param receivers how many shards of a stage this rank sends the same to
     */
    public long activations(IntUnaryOperator receivers) {
        return ops.stream()
                .filter(op -> op instanceof Op.SendActivation)
                .map(op -> ((Op.SendActivation) op).unit())
                .mapToLong(
                        unit ->
                                receivers.applyAsInt(unit.stage() + 1)
                                        * boundary(unit, FrameKind.ACTIVATION, 1))
                .sum();
    }

    /** Returns the bytes of their gradients, sent in the other direction. */
    public long activationGradients(IntUnaryOperator receivers) {
        return ops.stream()
                .filter(op -> op instanceof Op.SendGradient)
                .map(op -> ((Op.SendGradient) op).unit())
                .mapToLong(
                        unit ->
                                receivers.applyAsInt(unit.stage() - 1)
                                        * boundary(unit, FrameKind.GRADIENT, -1))
                .sum();
    }

    private long boundary(WorkUnit unit, FrameKind kind, int direction) {
        ShardShape shape = settings.shape(role(unit.stage()));
        return codecs.bytes(
                new ChannelKey(kind, unit.stage(), unit.stage() + direction),
                shape.ownRows(batch.rows(unit.slice())),
                settings.boundaryColumns());
    }

    /**
     * Returns the bytes sent to other context parts: of keys, values and their gradients to the
     * next one, of states of retentions and their gradients to all.
     */
    public long ring() {
        return computations().stream().mapToLong(this::ring).sum();
    }

    private List<Op.Compute> computations() {
        return ops.stream().flatMap(op -> op.computations().stream()).toList();
    }

    private long ring(Op.Compute op) {
        StageRole role = role(op.stage());
        IntStream layers = IntStream.range(role.firstLayer(), role.firstLayer() + role.layers());
        long bytes =
                switch (op) {
                    case Op.Forward _ -> layers.mapToLong(l -> moving(role, op, l, 1)).sum();
                    case Op.Recompute _ -> layers.mapToLong(l -> movingAgain(role, op, l)).sum();
                    case Op.InputGradient _ ->
                            backwards(role)
                                            .filter(this::attends)
                                            .mapToLong(l -> moving(role, op, l, 2))
                                            .sum()
                                    + backwards(role)
                                            .filter(settings.recomputedBlocks()::contains)
                                            .mapToLong(l -> movingAgain(role, op, l))
                                            .sum();
                    case Op.BackwardWeight _ -> 0;
                };
        return bytes * (settings.grid().context() - 1);
    }

    /**
     * Returns the bytes that a part sends of its own.
     *
     * @param blocks of keys and values, or as large
     */
    private long moving(StageRole role, Op.Compute op, int layer, int blocks) {
        return retains(layer)
                ? stateBytes(role, op.unit())
                : blocks * keyValueBytes(role, op.unit());
    }

    /** The same of a layer that runs again; where sequences are cut, its states are kept. */
    private long movingAgain(StageRole role, Op.Compute op, int layer) {
        return retains(layer) && batch.sliced() ? 0 : moving(role, op, layer, 1);
    }

    private boolean retains(int layer) {
        return settings.shape().block().retains(layer);
    }

    /** Returns the bytes of what this part's runs of a slice add to states. */
    private long stateBytes(StageRole role, WorkUnit unit) {
        int tokens = batch.sliceLengths().get(unit.slice());
        int runs = settings.tokens(place).of(batch.firstToken(unit.slice()), tokens).size();
        return (long) runs * batch.sequences() * settings.shape(role).stateColumns() * Float.BYTES;
    }

    private StageRole role(int stage) {
        return settings.role(stage, place);
    }

    /** Returns the bytes of keys and values of this part's tokens up to the end of the slice. */
    private long keyValueBytes(StageRole role, WorkUnit unit) {
        long rows = (long) batch.sequences() * batch.firstToken(unit.slice() + 1);
        return rows * 2 * settings.shape(role).keyColumns() * Float.BYTES;
    }

    /** Returns the number of blocks whose forward runs again inside a backward. */
    private long runAgain(StageRole role) {
        return backwards(role).filter(settings.recomputedBlocks()::contains).count();
    }

    /** Returns the layers that have a backward. */
    private IntStream backwards(StageRole role) {
        int end = role.firstLayer() + role.layers();
        return IntStream.range(role.firstLayer() + lowest(role), end);
    }

    private int lowest(StageRole role) {
        return trained.endsIn(role) ? trained.lowestBlock(role) : 0;
    }

    /** Returns whether the backward of a layer includes its first half. */
    private boolean attends(int layer) {
        return trained.attention(layer) || goesOn(layer);
    }

    /** Returns whether anything below a layer is trained. */
    private boolean goesOn(int layer) {
        return trained.embedding() || IntStream.range(0, layer).anyMatch(trained::block);
    }

    /**
     * Returns what a backward of the blocks moves.
     *
     * @param weights whether it computes the gradients of weights as well
     */
    private Moves blocksBackward(StageRole role, boolean weights) {
        return backwards(role)
                .mapToObj(layer -> blockBackward(layer, weights))
                .reduce(Moves.NONE, Moves::plus);
    }

    private Moves blockBackward(int layer, boolean weights) {
        boolean attends = attends(layer);
        long outputs = attends ? 2 : 1;
        long inputs =
                weights
                        ? products(layer, "mlp.c_fc")
                                + (attends ? products(layer, "attn.c_attn") : 0)
                        : 0;
        long sums = attends || trained.secondNorm(layer) ? 1 : 0;
        sums += goesOn(layer) || trained.firstNorm(layer) ? 1 : 0;
        return new Moves(outputs + inputs, sums);
    }

    private Moves weightGradients(StageRole role) {
        return new Moves(
                backwards(role)
                        .mapToLong(
                                layer ->
                                        products(layer, "mlp.c_proj")
                                                + products(layer, "mlp.c_fc")
                                                + products(layer, "attn.c_proj")
                                                + products(layer, "attn.c_attn"))
                        .sum(),
                0);
    }

    private long products(int layer, String linear) {
        return trained.factor(layer, linear) ? 1 : 0;
    }

    /**
     * Returns the bytes of activations, gradients and parts of softmax sent to the other tensor
     * shards.
     */
    public long shards() {
        return computations().stream().mapToLong(this::shards).sum() + normGradients();
    }

    private long shards(Op.Compute op) {
        StageRole role = role(op.stage());
        Moves moves =
                switch (op) {
                    case Op.Forward _ -> forward(role).plus(embedding(role));
                    case Op.Recompute _ -> recompute(role);
                    case Op.Backward _ ->
                            head(role)
                                    .plus(blocksBackward(role, true))
                                    .plus(Moves.ofBlocks(runAgain(role), keptGathers(), 1))
                                    .plus(embeddingGradient(role));
                    case Op.BackwardInput _ ->
                            head(role)
                                    .plus(blocksBackward(role, false))
                                    .plus(Moves.ofBlocks(runAgain(role), keptGathers(), 1))
                                    .plus(embeddingGradient(role));
                    case Op.BackwardWeight _ -> weightGradients(role);
                };
        long bytes = moves.sums() * sum(role, op.unit());
        if (settings.sequence()) {
            bytes += moves.gathers() * gather(role, op.unit());
        }
        boolean loss = role.last() && op instanceof Op.InputGradient;
        return loss ? bytes + softmaxParts(role, op.unit()) : bytes;
    }

    /**
     * Collectives over tensors of a unit's rows.
     *
     * @param gathers of own rows, where these are divided
     * @param sums of what each shard has for all rows
     */
    private record Moves(long gathers, long sums) {
        static final Moves NONE = new Moves(0, 0);

        static Moves ofBlocks(long blocks, int gathers, int sums) {
            return new Moves(blocks * gathers, blocks * sums);
        }

        Moves plus(Moves more) {
            return new Moves(gathers + more.gathers, sums + more.sums);
        }
    }

    /** Both halves of every block gather their norm's output and sum their own. */
    private static Moves forward(StageRole role) {
        return Moves.ofBlocks(role.layers(), 2, 2);
    }

    private static Moves embedding(StageRole role) {
        return role.first() ? new Moves(0, 1) : Moves.NONE;
    }

    private Moves embeddingGradient(StageRole role) {
        return role.first() && trained.embedding() ? new Moves(1, 0) : Moves.NONE;
    }

    private static Moves head(StageRole role) {
        return role.last() ? new Moves(1, 1) : Moves.NONE;
    }

    /**
     * The last block's output is recomputed only for a head; kept keys and values are not
     * recomputed.
     */
    private Moves recompute(StageRole role) {
        boolean asked = role.layers() > 0 || role.last();
        Moves blocks = Moves.ofBlocks(role.layers(), keptGathers(), 2);
        Moves last = role.layers() > 0 && !role.last() ? new Moves(0, -1) : Moves.NONE;
        return blocks.plus(last).plus(asked ? embedding(role) : Moves.NONE);
    }

    /**
     * Returns the gathers of a block that runs again: where sequences are cut, queries, keys and
     * values are kept, if nothing else has to be kept of them.
     */
    private int keptGathers() {
        boolean kept = batch.sliced() && !settings.shape().block().heads().norms();
        return kept ? 1 : 2;
    }

    /** Returns the bytes sent for a sum over all rows. */
    private long sum(StageRole role, WorkUnit unit) {
        return settings.sequence()
                ? sent(CollectiveKind.REDUCE_SCATTER, rows(unit), role.shard())
                : allReduce(elements(unit), role.shard());
    }

    /** Returns the bytes sent to gather the rows that each shard has. */
    private long gather(StageRole role, WorkUnit unit) {
        return sent(CollectiveKind.ALL_GATHER, rows(unit), role.shard());
    }

    private long allReduce(long elements, int shard) {
        return allReduce(elements, Float.BYTES, shard);
    }

    private long allReduce(long elements, int elementBytes, int shard) {
        var map = new ShardMap(elements, tensorShards());
        return CollectiveForm.of(elements * elementBytes, ringFromBytes)
                .sentBytes(CollectiveKind.ALL_REDUCE, map, shard, elementBytes);
    }

    private long elements(WorkUnit unit) {
        return (long) batch.rows(unit.slice()) * settings.shape().width();
    }

    private ShardMap rows(WorkUnit unit) {
        return new ShardMap(elements(unit), tensorShards(), elements(unit) / tensorShards());
    }

    /** Tensor shards of the stages of this rank. */
    private int tensorShards() {
        return settings.grid().shardsOf(place.pipeline());
    }

    private long sent(CollectiveKind kind, ShardMap map, int shard) {
        return CollectiveForm.of(map.elements() * Float.BYTES, ringFromBytes)
                .sentBytes(kind, map, shard, Float.BYTES);
    }

    private long softmaxParts(StageRole role, WorkUnit unit) {
        int logitsRows = LossHead.logitsRows(settings.shape(role), batch);
        int shards = tensorShards();
        return HeadChunk.of(batch.blocks(unit.slice()), logitsRows, batch.logits()).stream()
                .mapToLong(chunk -> TensorShards.gatheredColumns(3 * chunk.rows()))
                .map(
                        columns ->
                                sent(
                                        CollectiveKind.ALL_GATHER,
                                        new ShardMap(columns * shards, shards),
                                        role.shard()))
                .sum();
    }

    /** Returns the bytes sent to sum once. */
    private long normGradientSum(StageRole role) {
        var scopes = StageScopes.counting(settings, "traffic");
        ShardShape shape = settings.shape(role);
        StageParameters parameters =
                StageParameters.allocate(
                        new ParameterAllocator(
                                scopes,
                                settings.precision(),
                                ParameterAllocator.Use.TRAIN,
                                Sharding.of(settings, place),
                                settings.fineTuning()),
                        shape,
                        role);
        Tensor room = NormGradients.room(scopes.scratch(), shape, parameters);
        return room == null ? 0 : allReduce(room.elements(), room.type().bytes(), role.shard());
    }

    /**
     * Returns the bytes of the gradients of norms and of adapters that shards sum, which are summed
     * with every sum over replicas, or once.
     */
    private long normGradients() {
        int holders = settings.grid().data() * settings.grid().context();
        return computations().stream()
                .mapToInt(Op::stage)
                .distinct()
                .mapToLong(
                        stage -> {
                            StageRole role = role(stage);
                            long times =
                                    holders == 1
                                            ? 1
                                            : ops.stream()
                                                    .filter(
                                                            op ->
                                                                    op instanceof Op.ReduceGradients
                                                                            && op.stage() == stage)
                                                    .count();
                            return times * normGradientSum(role);
                        })
                .sum();
    }
}
