package dev.penstock.actors.dataplane;

/**
 * What went between a rank and one of its peers since their link was opened; a recovery opens it
 * anew. Counters only rise.
 *
 * @param peer the other rank
 * @param sentBytes of tensors, in all frames that entered the log, those sent again too
 * @param receivedBytes of tensors, in frames that were accepted
 * @param backPressured tensors that met a full log and had to wait
 * @param outOfCredit tensors that had to wait until the peer had a free slot
 * @param resentFrames that went again, since the peer missed them or found them damaged
 * @param corruptFrames from the peer whose checksum or seal did not fit
 */
public record LinkTraffic(
        int peer,
        long sentBytes,
        long receivedBytes,
        long backPressured,
        long outOfCredit,
        long resentFrames,
        long corruptFrames) {}
