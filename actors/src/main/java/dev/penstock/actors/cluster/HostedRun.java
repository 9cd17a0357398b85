package dev.penstock.actors.cluster;

import dev.penstock.actors.rank.RankResources;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import javax.crypto.SecretKey;

/** A run as one node has it. Called from one thread at a time; calls may block for seconds. */
public interface HostedRun extends AutoCloseable {
    /** Hash of the plan that this node built. */
    String planHash();

    /** For how long its ranks wait for another supervisor when theirs is gone. */
    Duration patience();

    /**
     * Starts the run's media driver for all nodes of this host; once more when that has ended.
     *
     * @param onDeath told once, in a sentence, if it ends before {@link #close}
     * @return its directory
     */
    Path startDriver(Consumer<String> onDeath);

    /**
     * Joins a media driver of this host; once.
     *
     * @param key of the run, for frames between hosts; empty where all is on loopback or in the
     *     open
     */
    RankResources resources(Path driverDirectory, Optional<SecretKey> key);

    /** Lets go of everything; the ranks must have stopped. */
    @Override
    void close();
}
