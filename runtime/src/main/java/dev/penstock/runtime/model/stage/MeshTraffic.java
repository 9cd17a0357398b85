package dev.penstock.runtime.model.stage;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.model.layers.LossHead;
import dev.penstock.runtime.model.layers.TensorShards;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.mesh.MeshGradients;
import dev.penstock.runtime.model.parameters.ParameterAllocator;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.HeadChunk;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.Op;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The bytes that a rank on a mesh of tensor shards sends to the others in a training step,
 * calculated from sizes alone. With n rows of a product Y = X W on a shard, and its blocks of x, w
 * and y elements:
 *
 * <pre>
 *              Y = X W              dX = dY W^T          dW = X^T dY
 *   2d, 2.5d   (q-1) (x + w)        (q-1) (w + x)        (q-1) (x + w)
 *   3d         (q-1) (x + w + y)    (q-1) (y + w + x)    (q-1) (x + y + w)
 * </pre>
 */
public final class MeshTraffic {
    private final GptSettings settings;
    private final BatchShape batch;
    private final RankPlace place;
    private final List<Op> ops;
    private final List<Long> ringFromBytes;
    private final TensorMesh mesh;

    /**
     * @param place of the rank
     * @param ops of its program
     * @param ringFromBytes by axis, the size from which the shards of its line use a ring
     */
    public MeshTraffic(
            GptSettings settings, RankPlace place, List<Op> ops, List<Long> ringFromBytes) {
        this.settings = settings;
        this.batch = settings.batchOfPart();
        this.place = place;
        this.ops = List.copyOf(ops);
        this.ringFromBytes = List.copyOf(ringFromBytes);
        mesh = settings.grid().mesh();
    }

    /** Returns the bytes of blocks, parts of norms and of softmax, and gradients. */
    public long shards() {
        List<Op.Compute> computations =
                ops.stream().flatMap(op -> op.computations().stream()).toList();
        return computations.stream().mapToLong(this::sent).sum()
                + computations.stream()
                        .mapToInt(Op::stage)
                        .distinct()
                        .mapToLong(this::gradients)
                        .sum();
    }

    private long sent(Op.Compute op) {
        StageRole role = settings.role(op.stage(), place);
        var unit = new Unit(settings.shape(role), role, op.unit().slice());
        int again =
                Math.toIntExact(
                        IntStream.range(role.firstLayer(), role.firstLayer() + role.layers())
                                .filter(settings.recomputedBlocks()::contains)
                                .count());
        return switch (op) {
            case Op.Forward _ -> unit.forward();
            case Op.Recompute _ ->
                    unit.forward()
                            - (role.layers() > 0 && !role.last() ? unit.mlpOutput().multiply() : 0)
                            - (role.layers() == 0 && !role.last() ? unit.embedding() : 0);
            case Op.Backward _ -> unit.backwardInput() + unit.again(again) + unit.backwardWeight();
            case Op.BackwardInput _ -> unit.backwardInput() + unit.again(again);
            case Op.BackwardWeight _ -> unit.backwardWeight();
        };
    }

    /** What one unit sends. */
    private final class Unit {
        private final ShardShape shape;
        private final StageRole role;
        private final int slice;
        private final int rows;
        private final ModelShape model;
        private final HeadDesign heads;

        Unit(ShardShape shape, StageRole role, int slice) {
            this.shape = shape;
            this.role = role;
            this.slice = slice;
            rows = batch.rows(slice);
            model = shape.model();
            heads = model.block().heads();
        }

        private List<Product> products() {
            return List.of(
                    inward(shape.queryKeyValueColumns()),
                    outward(rows, heads.outputColumns(), shape.outputColumns()),
                    inward(shape.hiddenColumns()),
                    mlpOutput());
        }

        Product mlpOutput() {
            return outward(rows, model.block().hidden(), shape.hidden());
        }

        private Product inward(int columns) {
            return product(true, rows, model.width(), shape.width(), columns);
        }

        private Product outward(int ofRows, int in, int columns) {
            return product(false, ofRows, in, columns, shape.width());
        }

        private Product product(
                boolean inward, int ofRows, int in, int columnsOfX, int columnsOfY) {
            return new Product(
                    inward,
                    (long) ofRows * columnsOfX,
                    (long) in / mesh.matrixRowParts() * columnsOfY,
                    (long) ofRows * columnsOfY);
        }

        long forward() {
            long block = products().stream().mapToLong(Product::multiply).sum() + 2 * norm(rows);
            return role.layers() * block
                    + (role.first() ? embedding() : 0)
                    + (role.last() ? norm(rows) : 0);
        }

        /** A block that runs again lacks its last product. */
        long again(int blocks) {
            long products = products().subList(0, 3).stream().mapToLong(Product::multiply).sum();
            return blocks * (products + 2 * norm(rows));
        }

        long backwardInput() {
            long block =
                    products().stream().mapToLong(Product::backwardInput).sum() + 2 * norm(rows);
            return role.layers() * block
                    + (role.first() ? embeddingGradient() : 0)
                    + (role.last() ? head() : 0);
        }

        long backwardWeight() {
            return role.layers() * products().stream().mapToLong(Product::backwardWeight).sum();
        }

        private long head() {
            int logitsRows = LossHead.logitsRows(shape, batch);
            return norm(rows)
                    + HeadChunk.of(batch.blocks(slice), logitsRows, batch.logits()).stream()
                            .mapToLong(
                                    chunk -> {
                                        Product logits = table(chunk.rows());
                                        return logits.backwardInput()
                                                + logits.multiply()
                                                + logits.backwardWeight()
                                                + shown(
                                                        TensorMesh.ALONG,
                                                        TensorShards.gatheredColumns(
                                                                3 * chunk.rows()));
                                    })
                            .sum();
        }

        /** The table as a matrix that leads from the vocabulary to the stream. */
        private Product table(int ofRows) {
            return outward(ofRows, model.vocabulary(), shape.tokens());
        }

        long embedding() {
            Product table = table(rows);
            return isCube()
                    ? gather(TensorMesh.ALONG, rows)
                            + gather(TensorMesh.DOWN, table.w())
                            + scatter(TensorMesh.ALONG, table.y())
                    : broadcasts(TensorMesh.DOWN, table.w());
        }

        private long embeddingGradient() {
            Product table = table(rows);
            return isCube()
                    ? gather(TensorMesh.ALONG, rows)
                            + gather(TensorMesh.ALONG, table.y())
                            + scatter(TensorMesh.DOWN, table.w())
                    : sums(TensorMesh.DOWN, table.w());
        }

        private long norm(int ofRows) {
            return shown(mesh.streamAxis(), TensorShards.gatheredColumns(2 * ofRows));
        }
    }

    /** What a product sends whose factors x and w, and y, have so many elements on this shard. */
    private final class Product {
        private final int axisOfX;
        private final int axisOfY;
        private final long x;
        private final long w;
        private final long y;

        Product(boolean inward, long x, long w, long y) {
            axisOfX = inward ? TensorMesh.ALONG : TensorMesh.THROUGH;
            axisOfY = inward ? TensorMesh.THROUGH : TensorMesh.ALONG;
            this.x = x;
            this.w = w;
            this.y = y;
        }

        long w() {
            return w;
        }

        long y() {
            return y;
        }

        long multiply() {
            return isCube()
                    ? gather(axisOfX, x) + gather(TensorMesh.DOWN, w) + scatter(axisOfY, y)
                    : broadcasts(TensorMesh.ALONG, x) + broadcasts(TensorMesh.DOWN, w);
        }

        long backwardInput() {
            return isCube()
                    ? gather(axisOfY, y) + gather(TensorMesh.DOWN, w) + scatter(axisOfX, x)
                    : broadcasts(TensorMesh.DOWN, w) + sums(TensorMesh.ALONG, x);
        }

        long backwardWeight() {
            return isCube()
                    ? gather(axisOfX, x) + gather(axisOfY, y) + scatter(TensorMesh.DOWN, w)
                    : broadcasts(TensorMesh.ALONG, x) + sums(TensorMesh.DOWN, w);
        }
    }

    private boolean isCube() {
        return mesh.kind() == TensorMesh.Kind.CUBE;
    }

    /** Every shard of a line sends its block to all others. */
    private long broadcasts(int axis, long block) {
        return toEachOwner(CollectiveKind.ALL_GATHER, axis, block);
    }

    /** Every shard of a line gets a sum from all others. */
    private long sums(int axis, long block) {
        return toEachOwner(CollectiveKind.REDUCE_SCATTER, axis, block);
    }

    private long toEachOwner(CollectiveKind kind, int axis, long block) {
        int size = mesh.size(axis);
        return IntStream.range(0, size)
                .mapToLong(owner -> sent(kind, axis, ShardMap.of(owner, block, size)))
                .sum();
    }

    private long gather(int axis, long own) {
        return sent(CollectiveKind.ALL_GATHER, axis, equal(axis, own));
    }

    private long scatter(int axis, long own) {
        return sent(CollectiveKind.REDUCE_SCATTER, axis, equal(axis, own));
    }

    private ShardMap equal(int axis, long own) {
        return new ShardMap(own * mesh.size(axis), mesh.size(axis), own);
    }

    private long shown(int axis, long columns) {
        int size = mesh.size(axis);
        return sent(CollectiveKind.ALL_GATHER, axis, new ShardMap(columns * size, size));
    }

    private long sent(CollectiveKind kind, int axis, ShardMap map) {
        return CollectiveForm.of(map.elements() * Float.BYTES, ringFromBytes.get(axis))
                .sentBytes(kind, map, mesh.at(place.tensor(), axis), Float.BYTES);
    }

    /** Gradients of what shards hold together, summed with every sum over replicas, or once. */
    private long gradients(int stage) {
        StageRole role = settings.role(stage, place);
        ShardShape shape = settings.shape(role);
        StageParameters parameters =
                StageParameters.allocate(
                        new ParameterAllocator(
                                StageScopes.counting(settings, "traffic"),
                                settings.precision(),
                                ParameterAllocator.Use.TRAIN,
                                Sharding.of(settings, place),
                                settings.fineTuning()),
                        shape,
                        role);
        long once =
                MeshGradients.of(shape, parameters).stream()
                        .mapToLong(
                                shared ->
                                        shared.axes().stream()
                                                .mapToLong(
                                                        axis ->
                                                                sent(
                                                                        CollectiveKind.ALL_REDUCE,
                                                                        axis,
                                                                        new ShardMap(
                                                                                shared.gradient()
                                                                                        .elements(),
                                                                                mesh.size(axis))))
                                                .sum())
                        .sum();
        long reductions =
                ops.stream()
                        .filter(op -> op instanceof Op.ReduceGradients && op.stage() == stage)
                        .count();
        return once * (settings.grid().data() == 1 ? 1 : reductions);
    }
}
