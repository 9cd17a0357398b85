package dev.penstock.runtime.metrics;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The right to write into a run's directory, which one process has at a time. Three things guard
 * it, since none is enough by itself:
 *
 * <pre>
 *   a set in memory     a second attempt in this process must not even open run.lock:
 *                       closing any channel of a file drops the process's lock of it
 *   run.lock            the system's lock; ends with the process, but a network file system
 *                       may keep it for minutes after a host died, or not know locks at all
 *   run.lease           names the holder, who renews it every second
 * </pre>
 *
 * A lease of a process of this host counts for as long as that process lives, even stopped. One of
 * another host counts until it has not moved for {@link Timing#missed()}, measured by the clock of
 * whoever waits, so that clocks need not agree; then it is taken over, whatever became of the
 * system's lock. A holder whose lease was taken over finds out with its next renewal, or when it
 * asks {@link #isMine()}. Safe for any thread.
 */
public final class RunLock implements AutoCloseable {
    /**
     * How often a lease is renewed, and for how long it must not have moved to be void.
     *
     * @param missed many times {@code beat}: a holder may wait for its disk
     */
    record Timing(Duration beat, Duration missed) {
        static final Timing USUAL = new Timing(Duration.ofSeconds(1), Duration.ofSeconds(15));
    }

    private static final Logger LOG = LoggerFactory.getLogger(RunLock.class);
    private static final Set<Path> HELD_HERE = ConcurrentHashMap.newKeySet();
    private static final String LOCK = "run.lock";
    private static final String LEASE = "run.lease";

    private final Path directory;
    private final LeaseHolder me;
    private final @Nullable FileChannel channel;
    private final Thread renewals;
    private volatile boolean lost;
    private volatile Runnable onLost = () -> {};
    private long beats;
    private boolean closed;

    private RunLock(Path directory, LeaseHolder me, @Nullable FileChannel channel, Timing timing)
            throws IOException {
        this.directory = directory;
        this.me = me;
        this.channel = channel;
        write();
        this.renewals =
                Thread.ofPlatform()
                        .daemon()
                        .name("penstock-run-lease")
                        .start(() -> renew(timing.beat()));
    }

    /**
     * Takes the right to write into a directory; empty if another has it. Waits for as long as it
     * takes to see whether a holder on another host still renews its lease.
     *
     * @throws IOException if the directory cannot be written into
     */
    static Optional<RunLock> take(Path directory) throws IOException {
        return take(directory, LeaseHolder.thisProcess(), Timing.USUAL);
    }

    static Optional<RunLock> take(Path directory, LeaseHolder me, Timing timing)
            throws IOException {
        Path place = directory.toRealPath();
        if (!HELD_HERE.add(place)) {
            return Optional.empty();
        }
        boolean taken = false;
        FileChannel channel = null;
        try {
            channel =
                    FileChannel.open(
                            place.resolve(LOCK),
                            StandardOpenOption.CREATE,
                            StandardOpenOption.WRITE);
            boolean locked = tryLock(channel);
            if (mayTake(place, me, locked, timing)) {
                if (!locked) {
                    channel.close();
                    channel = null;
                }
                var lock = new RunLock(place, me, channel, timing);
                taken = locked || lock.stands(timing);
                if (taken) {
                    return Optional.of(lock);
                }
                lock.close();
            }
            return Optional.empty();
        } finally {
            if (!taken) {
                if (channel != null) {
                    channel.close();
                }
                HELD_HERE.remove(place);
            }
        }
    }

    private static boolean tryLock(FileChannel channel) throws IOException {
        try {
            return channel.tryLock() != null;
        } catch (OverlappingFileLockException e) {
            return false; // by this very process, in a directory that has another name
        }
    }

    private static boolean mayTake(Path place, LeaseHolder me, boolean locked, Timing timing)
            throws IOException {
        String text = leaseIn(place);
        Optional<LeaseHolder> holder = LeaseHolder.of(text);
        if (holder.isEmpty()) {
            return locked; // given back, or from a version that had none
        }
        return switch (holder.get().lifeSeenFrom(me)) {
            case LIVES -> false;
            case GONE -> locked;
            case UNKNOWN -> stoodStill(place, text, timing);
        };
    }

    private static boolean stoodStill(Path place, String seen, Timing timing) throws IOException {
        long deadline = System.nanoTime() + timing.missed().toNanos();
        while (System.nanoTime() - deadline < 0) {
            LockSupport.parkNanos(timing.beat().toNanos() / 2);
            if (!leaseIn(place).equals(seen)) {
                return false;
            }
        }
        return true;
    }

    /** Empty if there is none. */
    private static String leaseIn(Path place) throws IOException {
        try {
            return Files.readString(place.resolve(LEASE));
        } catch (NoSuchFileException e) {
            return "";
        }
    }

    /** Whether two that took a lease over at the same time agree that it is this one's. */
    private boolean stands(Timing timing) {
        LockSupport.parkNanos(2 * timing.beat().toNanos());
        return isMine();
    }

    /** Words about who has a directory, behind "another run"; empty if that is not known. */
    static String holderOf(Path directory) throws IOException {
        return LeaseHolder.of(leaseIn(directory))
                .map(holder -> " (process %d on %s)".formatted(holder.pid(), holder.host()))
                .orElse("");
    }

    /** The process that has a directory, in its host's own space of numbers; empty if none does. */
    static OptionalLong pidOfHolder(Path directory) throws IOException {
        return LeaseHolder.of(leaseIn(directory)).stream().mapToLong(LeaseHolder::pid).findFirst();
    }

    /** The process that has a directory now, as far as can be told without waiting. */
    static Optional<RunKeeper> living(Path directory) throws IOException {
        Optional<LeaseHolder> found = LeaseHolder.of(leaseIn(directory));
        if (found.isEmpty()) {
            return Optional.empty();
        }
        LeaseHolder holder = found.get();
        return switch (holder.lifeSeenFrom(LeaseHolder.thisProcess())) {
            case LIVES -> Optional.of(new RunKeeper(holder.pid(), holder.host(), true));
            case GONE -> Optional.empty();
            case UNKNOWN ->
                    isFresh(directory.resolve(LEASE))
                            ? Optional.of(new RunKeeper(holder.pid(), holder.host(), false))
                            : Optional.empty();
        };
    }

    private static boolean isFresh(Path lease) throws IOException {
        Duration age =
                Duration.between(Files.getLastModifiedTime(lease).toInstant(), Instant.now());
        return age.compareTo(Timing.USUAL.missed()) < 0;
    }

    /** Whether a file of this name in a run's directory is part of its lock. */
    public static boolean isFileOf(String name) {
        return name.equals(LOCK) || name.equals(LEASE);
    }

    /** Removes what it left in a directory that is to be removed; nobody may have it. */
    static void deleteFiles(Path directory) throws IOException {
        Files.deleteIfExists(directory.resolve(LEASE));
        Files.deleteIfExists(directory.resolve(LOCK));
    }

    // ---- holding it -----------------------------------------------------------------------------

    /** In its place and of one length: a full disk takes it, too. */
    private void write() throws IOException {
        Files.writeString(
                directory.resolve(LEASE),
                me.text(beats),
                StandardOpenOption.CREATE,
                StandardOpenOption.WRITE);
    }

    private void renew(Duration beat) {
        while (!lost && !isClosed()) {
            LockSupport.parkNanos(beat.toNanos());
            beat();
        }
    }

    private void beat() {
        try {
            if (isMine()) {
                synchronized (this) {
                    if (!closed) {
                        beats++;
                        write();
                    }
                }
            }
        } catch (IOException e) {
            LOG.debug("{}: its lease cannot be renewed", directory, e);
        }
    }

    private synchronized boolean isClosed() {
        return closed;
    }

    /** Whether nobody has taken the directory over; asks the file system. */
    public boolean isMine() {
        if (lost) {
            return false;
        }
        try {
            Optional<LeaseHolder> holder = LeaseHolder.of(leaseIn(directory));
            if (isClosed() || holder.isEmpty() || holder.get().equals(me)) {
                return true;
            }
        } catch (IOException e) {
            return true; // nothing says that it is another's
        }
        lost = true;
        LOG.error("{}: another process has taken this run over", directory);
        onLost.run();
        return false;
    }

    /**
     * Has something done when the directory was taken over.
     *
     * @param action from the thread that found out; at once if that is known already
     */
    public void onLost(Runnable action) {
        onLost = action;
        if (lost) {
            action.run();
        }
    }

    /** Gives the right back; the next may have it at once. */
    @Override
    public void close() {
        boolean mine = isMine();
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
        }
        LockSupport.unpark(renewals);
        try (FileChannel _ = channel) {
            if (mine) {
                Files.deleteIfExists(directory.resolve(LEASE));
            }
        } catch (IOException e) {
            LOG.warn("{}: its lease stays until this process ends", directory, e);
        } finally {
            HELD_HERE.remove(directory);
        }
    }
}
