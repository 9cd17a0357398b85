package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.serialization.WireMessage;
import java.util.Optional;

/**
 * Where a rank lives in an epoch, as all ranks of the run are told.
 *
 * @param home the lowest rank that lives in the same process
 * @param mirrorHolder the rank that holds its mirror, or {@link
 *     dev.penstock.actors.mirror.MirrorLayout#NOBODY}
 * @param address of its process; empty if all ranks use this process's media driver
 */
public record RankLocation(int rank, int home, int mirrorHolder, Optional<PeerAddress> address)
        implements WireMessage {}
