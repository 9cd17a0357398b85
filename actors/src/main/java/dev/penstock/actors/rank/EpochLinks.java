package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.PlanRevision;
import java.util.List;

/**
 * What a rank needs to open its links in an epoch, besides what it knows from earlier ones.
 *
 * @param epoch the epoch of the run
 * @param changed the locations that may not be what the rank held when it prepared, by rising rank;
 *     all of them for a rank that is born
 * @param fills ranks whose mirrors are to be filled, as in {@link
 *     dev.penstock.actors.mirror.MirrorLayout}
 * @param link the directory of the media driver; empty if the process knows it or it has not
 *     changed
 * @param revision of the run's plan that the epoch follows
 */
public record EpochLinks(
        int epoch,
        List<RankLocation> changed,
        List<Integer> fills,
        String link,
        PlanRevision revision)
        implements WireMessage {
    public EpochLinks {
        changed = List.copyOf(changed);
        fills = List.copyOf(fills);
    }
}
