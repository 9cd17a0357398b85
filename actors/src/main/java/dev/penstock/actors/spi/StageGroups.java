package dev.penstock.actors.spi;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.TensorMesh;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * With whom a stage computes and sums, for one epoch.
 *
 * @param tensor the tensor shards of this stage in this rank's replica
 * @param context the ranks that hold the other parts of this rank's sequences
 * @param replicas everybody who holds the same parameters as this rank: data replicas times context
 *     parts, data slowest
 * @param mesh by axis, the tensor shards on this rank's line of a {@link
 *     dev.penstock.actors.collective.TensorMesh}; of one each without a mesh
 * @param beside the tensor shards and the mesh once more, for the second op of a pair, whose sums
 *     have an order of their own; null where no pair runs both its ops at a time
 */
public record StageGroups(
        CollectiveGroup tensor,
        CollectiveGroup context,
        CollectiveGroup replicas,
        List<CollectiveGroup> mesh,
        @Nullable StageGroups beside) {
    private static final List<CollectiveGroup> NO_MESH =
            Collections.nCopies(TensorMesh.AXES, SoloGroup.GROUP);

    public StageGroups {
        mesh = List.copyOf(mesh);
    }

    /** Without the second op of a pair. */
    public StageGroups(
            CollectiveGroup tensor,
            CollectiveGroup context,
            CollectiveGroup replicas,
            List<CollectiveGroup> mesh) {
        this(tensor, context, replicas, mesh, null);
    }

    /** Without a mesh. */
    public StageGroups(CollectiveGroup tensor, CollectiveGroup context, CollectiveGroup replicas) {
        this(tensor, context, replicas, NO_MESH);
    }

    /** Of a stage that nobody shares. */
    public static final StageGroups ALONE =
            new StageGroups(SoloGroup.GROUP, SoloGroup.GROUP, SoloGroup.GROUP);
}
