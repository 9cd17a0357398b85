package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Transport;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Settings of one process's data plane. All processes of a run use the same, but for directory,
 * poller and UDP endpoint.
 *
 * @param directory of the media driver, see {@link EmbeddedDriver} and {@link MediaDriverProcess}
 * @param termLengthBytes of each log in shared memory; a power of two. Three terms are mapped per
 *     publication; 8 MiB is the fastest here, larger terms leave the caches
 * @param mtuBytes longest frame in shared memory; a multiple of 32. Aeron allows an eighth of a
 *     term at most, so with small terms frames are shorter
 * @param poller how the poller waits
 * @param streamBase first stream id; rank r's inbox in epoch e is {@code streamBase + e * 4096 + r}
 * @param runId identity of the run; frames of another are refused
 * @param epoch added to the epoch of every opening
 * @param links how frames travel and what protects them
 */
public record AeronSettings(
        Path directory,
        int termLengthBytes,
        int mtuBytes,
        PollerMode poller,
        int streamBase,
        long runId,
        int epoch,
        LinkSettings links) {

    /** Ranks of one run; streams of different epochs are this far apart. */
    public static final int MAX_RANKS = 4096;

    /** The longest frame: one datagram. */
    public static final int MAX_MTU = 65504;

    private static final int MIN_TERM = 64 * 1024;
    private static final int MAX_TERM = 1024 * 1024 * 1024;

    public AeronSettings {
        List<String> problems = new ArrayList<>();
        checkLog(termLengthBytes, mtuBytes, problems);
        if (epoch < 0) {
            problems.add("epoch: expected 0 or more, got " + epoch);
        }
        if (!problems.isEmpty()) {
            throw new DataPlaneException("data plane settings: " + String.join("; ", problems));
        }
    }

    static void checkLog(int termLengthBytes, int mtuBytes, List<String> problems) {
        if (!isTermLength(termLengthBytes)) {
            problems.add(
                    "term length: expected a power of two from 64 KiB to 1 GiB, got %d bytes"
                            .formatted(termLengthBytes));
        }
        if (mtuBytes < 512 || mtuBytes > MAX_MTU || mtuBytes % 32 != 0) {
            problems.add(
                    "mtu: expected a multiple of 32 from 512 to %d bytes, got %d"
                            .formatted(MAX_MTU, mtuBytes));
        }
    }

    /** IPC with 8 MiB terms, the longest frames, the adaptive poller, no checksums, epoch 0. */
    public static AeronSettings ipc(Path directory, long runId) {
        return new AeronSettings(
                directory,
                8 * 1024 * 1024,
                MAX_MTU,
                PollerMode.ADAPTIVE,
                1000,
                runId,
                0,
                LinkSettings.IPC);
    }

    /** Same as {@link #ipc}, but all over UDP on the loopback interface. */
    public static AeronSettings udp(Path directory, long runId) {
        return ipc(directory, runId).withLinks(links -> links.withTransport(Transport.UDP));
    }

    public AeronSettings withTermLength(int bytes) {
        return new AeronSettings(
                directory, bytes, mtuBytes, poller, streamBase, runId, epoch, links);
    }

    public AeronSettings withMtu(int bytes) {
        return new AeronSettings(
                directory, termLengthBytes, bytes, poller, streamBase, runId, epoch, links);
    }

    public AeronSettings withPoller(PollerMode mode) {
        return new AeronSettings(
                directory, termLengthBytes, mtuBytes, mode, streamBase, runId, epoch, links);
    }

    public AeronSettings withEpoch(int number) {
        return new AeronSettings(
                directory, termLengthBytes, mtuBytes, poller, streamBase, runId, number, links);
    }

    public AeronSettings withLinks(UnaryOperator<LinkSettings> change) {
        return new AeronSettings(
                directory,
                termLengthBytes,
                mtuBytes,
                poller,
                streamBase,
                runId,
                epoch,
                change.apply(links));
    }

    /** The stream that a rank receives on. */
    int inbox(int rank, int openedEpoch) {
        if (rank < 0 || rank >= MAX_RANKS) {
            throw new DataPlaneException(
                    "rank: expected 0 to %d, got %d".formatted(MAX_RANKS - 1, rank));
        }
        return streamBase + (epoch + openedEpoch) * MAX_RANKS + rank;
    }

    /** The longest frame that Aeron allows with these terms. */
    int frameBytes() {
        return Math.min(mtuBytes, termLengthBytes / 8);
    }

    static boolean isTermLength(int bytes) {
        return bytes >= MIN_TERM && bytes <= MAX_TERM && Integer.bitCount(bytes) == 1;
    }
}
