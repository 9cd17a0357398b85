package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Settings of one process's data plane. All processes of a run use the same, but for the poller.
 *
 * @param directory of the media driver, see {@link EmbeddedDriver} and {@link MediaDriverProcess}
 * @param channel Aeron channel, {@code aeron:ipc}
 * @param termLengthBytes of each publication's log; a power of two. Three terms are mapped per
 *     publication; 8 MiB is the fastest here, larger terms leave the caches
 * @param mtuBytes longest frame; a multiple of 32. Aeron allows an eighth of a term at most, so
 *     with small terms frames are shorter
 * @param poller how the poller waits
 * @param streamBase first stream id; rank r's inbox in epoch e is {@code streamBase + e * 4096 + r}
 * @param runId identity of the run; frames of another are refused
 * @param epoch of the run; frames of another are refused
 * @param crc whether frames carry a CRC32C of their payload
 */
public record AeronSettings(
        Path directory,
        String channel,
        int termLengthBytes,
        int mtuBytes,
        PollerMode poller,
        int streamBase,
        long runId,
        int epoch,
        boolean crc) {

    /** Ranks of one run; streams of different epochs are this far apart. */
    public static final int MAX_RANKS = 4096;

    private static final int MIN_TERM = 64 * 1024;
    private static final int MAX_TERM = 1024 * 1024 * 1024;
    private static final int MAX_MTU = 65504;

    public AeronSettings {
        List<String> problems = new ArrayList<>();
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
        if (epoch < 0) {
            problems.add("epoch: expected 0 or more, got " + epoch);
        }
        if (!problems.isEmpty()) {
            throw new DataPlaneException("data plane settings: " + String.join("; ", problems));
        }
    }

    /** IPC with 8 MiB terms, the longest frames, the adaptive poller, no checksums, epoch 0. */
    public static AeronSettings ipc(Path directory, long runId) {
        return new AeronSettings(
                directory,
                "aeron:ipc",
                8 * 1024 * 1024,
                MAX_MTU,
                PollerMode.ADAPTIVE,
                1000,
                runId,
                0,
                false);
    }

    public AeronSettings withTermLength(int bytes) {
        return new AeronSettings(
                directory, channel, bytes, mtuBytes, poller, streamBase, runId, epoch, crc);
    }

    public AeronSettings withMtu(int bytes) {
        return new AeronSettings(
                directory, channel, termLengthBytes, bytes, poller, streamBase, runId, epoch, crc);
    }

    public AeronSettings withPoller(PollerMode mode) {
        return new AeronSettings(
                directory, channel, termLengthBytes, mtuBytes, mode, streamBase, runId, epoch, crc);
    }

    public AeronSettings withEpoch(int number) {
        return new AeronSettings(
                directory,
                channel,
                termLengthBytes,
                mtuBytes,
                poller,
                streamBase,
                runId,
                number,
                crc);
    }

    public AeronSettings withCrc(boolean on) {
        return new AeronSettings(
                directory,
                channel,
                termLengthBytes,
                mtuBytes,
                poller,
                streamBase,
                runId,
                epoch,
                on);
    }

    /** The stream that a rank receives on. */
    int inbox(int rank) {
        if (rank < 0 || rank >= MAX_RANKS) {
            throw new DataPlaneException(
                    "rank: expected 0 to %d, got %d".formatted(MAX_RANKS - 1, rank));
        }
        return streamBase + epoch * MAX_RANKS + rank;
    }

    /** The longest frame that Aeron allows with these terms. */
    int frameBytes() {
        return Math.min(mtuBytes, termLengthBytes / 8);
    }

    static boolean isTermLength(int bytes) {
        return bytes >= MIN_TERM && bytes <= MAX_TERM && Integer.bitCount(bytes) == 1;
    }
}
