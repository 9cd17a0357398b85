package dev.penstock.actors.collective;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import java.util.List;

/** What the members of a group divide. The same ranks may be two groups. */
public enum GroupRole {
    /** A stage's matrices. */
    TENSOR(0),
    /** A sequence's tokens. */
    CONTEXT(1),
    /** Nothing: they hold the same parameters. */
    REPLICAS(2),
    /** A column of a mesh of tensor shards. */
    MESH_DOWN(3),
    /** A row of it. */
    MESH_ALONG(4),
    /** A line through its planes. */
    MESH_THROUGH(5),
    /** A stage's matrices, for the second op of a pair. */
    TENSOR_BESIDE(6),
    /** A column of a mesh, for the second op of a pair. */
    MESH_DOWN_BESIDE(7),
    /** A row of it. */
    MESH_ALONG_BESIDE(8),
    /** A line through its planes. */
    MESH_THROUGH_BESIDE(9);

    private final int lane;

    GroupRole(int lane) {
        this.lane = lane;
    }

    /** Those of the axes of a {@link TensorMesh}. */
    public static final List<GroupRole> OF_AXES = List.of(MESH_DOWN, MESH_ALONG, MESH_THROUGH);

    /** The same for the second op of a pair. */
    public static final List<GroupRole> OF_AXES_BESIDE =
            List.of(MESH_DOWN_BESIDE, MESH_ALONG_BESIDE, MESH_THROUGH_BESIDE);

    /** The way from one rank to another in a group of this role, in a run of so many ranks. */
    public ChannelKey channel(int from, int to, int ranks) {
        int first = lane * ranks;
        return new ChannelKey(FrameKind.COLLECTIVE, first + from, first + to);
    }
}
