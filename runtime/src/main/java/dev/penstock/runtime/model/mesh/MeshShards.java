package dev.penstock.runtime.model.mesh;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageRole;
import java.util.List;

/**
 * The tensor shards of a stage that lie on a {@link TensorMesh}, as one of them sees them: who
 * shares its lines, and room for what comes from them. Products need one block of each factor at a
 * time. Norms show each other two numbers of every row.
 */
public final class MeshShards {
    private final TensorMesh mesh;
    private final int index;
    private final Rooms rooms;
    private final MeshProduct inward;
    private final MeshProduct outward;
    private List<CollectiveGroup> groups = List.of();

    /**
     * Scratch of products and norms.
     *
     * @param rows of a factor or a sum {@code [1, n]}
     * @param otherRows the same again, in 3d
     * @param block of a matrix
     * @param norms two numbers of each row, from every shard that has columns of it
     */
    public record Rooms(Tensor rows, Tensor otherRows, Tensor block, Tensor norms) {
        /**
         * Allocates scratch for the largest unit.
         *
         * @param logitsRows rows of which the head has logits at a time
         */
        public static Rooms allocate(
                DeviceScope scope,
                ShardShape shape,
                StageRole role,
                BatchShape batch,
                int logitsRows) {
            TensorMesh mesh = shape.mesh();
            boolean cube = mesh.kind() == TensorMesh.Kind.CUBE;
            int times = cube ? mesh.side() : 1;
            int d = shape.width();
            int inner = Math.max(shape.outputColumns(), shape.hidden());
            int into = Math.max(shape.queryKeyValueColumns(), shape.hiddenColumns());
            int columns =
                    Math.max(d, role.layers() == 0 ? 0 : cube ? Math.max(inner, into) : inner);
            long rows = (long) batch.largestRows() * columns;
            long block = 0;
            if (role.layers() > 0) {
                block = (long) d * Math.max(into, inner);
            }
            if (role.first() || role.last()) {
                block = Math.max(block, (long) shape.tokens() * d);
            }
            if (role.last()) {
                rows = Math.max(rows, (long) logitsRows * shape.tokens());
            }
            return new Rooms(
                    row(scope, "rows of a mesh", times * rows),
                    row(scope, "other rows of a mesh", cube ? times * rows : 1),
                    row(scope, "block of a matrix of a mesh", block),
                    scope.tensor(
                            "norms of a mesh",
                            DType.F32,
                            mesh.side(),
                            normColumns(batch.largestRows())));
        }

        private static Tensor row(DeviceScope scope, String name, long elements) {
            return scope.tensor(name, DType.F32, 1, Math.toIntExact(elements));
        }
    }

    public MeshShards(Kernels kernels, ShardShape shape, Rooms rooms) {
        this.rooms = rooms;
        mesh = shape.mesh();
        index = shape.index();
        int vocabulary = shape.model().vocabulary();
        if (mesh.kind() == TensorMesh.Kind.CUBE) {
            inward = new CubeProduct(kernels, this, mesh.side(), vocabulary, true);
            outward = new CubeProduct(kernels, this, mesh.side(), vocabulary, false);
        } else {
            inward = new PlaneProduct(kernels, this, mesh.side(), vocabulary);
            outward = inward;
        }
    }

    /**
     * Sets the groups through which shards exchange data until the next call.
     *
     * @param newGroups by axis
     */
    public void connect(List<CollectiveGroup> newGroups) {
        for (int axis = 0; axis < TensorMesh.AXES; axis++) {
            CollectiveGroup group = newGroups.get(axis);
            if (group.size() != mesh.size(axis) || group.index() != at(axis)) {
                throw new IllegalArgumentException(
                        "expected a group for place %d of %d on axis %d of a mesh, got member %d of %d"
                                .formatted(
                                        at(axis),
                                        mesh.size(axis),
                                        axis,
                                        group.index(),
                                        group.size()));
            }
        }
        groups = List.copyOf(newGroups);
    }

    public CollectiveGroup group(int axis) {
        if (groups.isEmpty()) {
            throw new IllegalStateException("tensor shards must be connected before they compute");
        }
        return groups.get(axis);
    }

    int at(int axis) {
        return mesh.at(index, axis);
    }

    /** Returns who multiplies from the stream inward, or back. */
    public MeshProduct product(boolean toInner) {
        return toInner ? inward : outward;
    }

    /** Replaces a tensor by its sum over all shards along some axes. */
    void sum(Tensor tensor, List<Integer> axes) {
        for (int axis : axes) {
            CollectiveGroup line = group(axis);
            line.await(line.allReduce(tensor));
        }
    }

    Tensor rows(int count, int columns) {
        return view(rooms.rows(), count, columns);
    }

    Tensor otherRows(int count, int columns) {
        return view(rooms.otherRows(), count, columns);
    }

    Tensor block(int count, int columns) {
        return view(rooms.block(), count, columns);
    }

    private static Tensor view(Tensor room, int rows, int columns) {
        if ((long) rows * columns > room.elements()) {
            throw new IllegalStateException(
                    "a mesh has room for %d elements, asked for %d x %d"
                            .formatted(room.elements(), rows, columns));
        }
        return new Tensor(room.buffer(), room.offsetBytes(), DType.F32, rows, columns, columns);
    }

    /** Two numbers of each row, as shards gather them. */
    private static int normColumns(int rows) {
        return Math.toIntExact(new ShardMap(2L * rows, 1).length());
    }

    /** Returns dense rows, one per shard that has columns of the stream. */
    public Tensor normParts(int rows) {
        int columns = normColumns(rows);
        return new Tensor(
                rooms.norms().buffer(),
                rooms.norms().offsetBytes(),
                DType.F32,
                mesh.side(),
                columns,
                columns);
    }

    /** Returns this shard's numbers. */
    public Tensor ownNorms(Tensor parts, int rows) {
        return parts.rows(at(mesh.streamAxis()), 1).columns(0, 2 * rows);
    }

    /** Sends each shard's numbers to all that have columns of the same rows. */
    public void showNorms(Tensor parts) {
        CollectiveGroup line = group(mesh.streamAxis());
        line.await(line.allGather(parts, new ShardMap(parts.elements(), line.size())));
    }
}
