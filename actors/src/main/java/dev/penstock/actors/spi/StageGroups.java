package dev.penstock.actors.spi;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;

/**
 * With whom a stage computes and sums, for one epoch.
 *
 * @param tensor the tensor shards of this stage in this rank's replica
 * @param context the ranks that hold the other parts of this rank's sequences
 * @param replicas everybody who holds the same parameters as this rank: data replicas times context
 *     parts, data slowest
 */
public record StageGroups(
        CollectiveGroup tensor, CollectiveGroup context, CollectiveGroup replicas) {
    /** Of a stage that nobody shares. */
    public static final StageGroups ALONE =
            new StageGroups(SoloGroup.GROUP, SoloGroup.GROUP, SoloGroup.GROUP);
}
