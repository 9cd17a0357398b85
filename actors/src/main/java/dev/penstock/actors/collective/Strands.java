package dev.penstock.actors.collective;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Runs the two halves of a pair of ops so that one computes while the other waits for a sum of
 * tensor shards (STP; Qi et al. 2025, arXiv 2510.27257). The first half runs on the rank's thread,
 * the second on one of its own. A strand computes only while it holds the turn, and gives it up
 * exactly as long as it waits for a sum:
 *
 * <pre>
 *   first    compute | sum . . . . |         | compute | sum . . .
 *   second           | compute     | sum . . . . . .   | compute
 * </pre>
 *
 * <p>So kernels, pools and buffers have one user at a time, and results have the bits of the halves
 * run one after the other: each strand has scratch of its own, and no two halves of a pair add to
 * the same gradient. What sums do meanwhile, they do on the thread that waits, with kernels of
 * their own ({@link dev.penstock.cuda.device.Device#sumsBesideOps}); a second lock lets one strand
 * at a time do that, as both use the rank's endpoint.
 *
 * <p>Nobody deadlocks. A strand's sums are those of a group of its own on every shard, begun in the
 * order of the program; so they meet the same strand's of the other shards, whatever the timing. Of
 * all ops that some shard has not ended, take the first: each of its halves that does not compute
 * waits for a sum for which every other shard has the same half at hand, and none of these waits
 * for anything but the turn, which a waiting strand does not hold, or an earlier sum of that half.
 * A shard that runs halves one after the other is no different: it has both groups.
 *
 * <p>The rank's thread only, unless said otherwise.
 */
public final class Strands implements AutoCloseable {
    private final ReentrantLock turn = new ReentrantLock();
    private final ReentrantLock talk = new ReentrantLock();
    private final ExecutorService second;

    /** What ended a half of the pair under way first. */
    private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

    /**
     * @param name of the second strand's thread
     */
    public Strands(String name) {
        second =
                Executors.newSingleThreadExecutor(
                        Thread.ofPlatform().name(name).daemon().factory());
    }

    /** Returns a group as both strands may use it, each its own: waits in it give up the turn. */
    public CollectiveGroup group(CollectiveGroup group) {
        return group.size() == 1 ? group : new StrandGroup(this, group);
    }

    /** Returns how a strand waits, which nobody does any longer once the other half has failed. */
    public RankWaits waits(RankWaits waits) {
        return new RankWaits() {
            @Override
            public boolean isCalledOff() {
                return failure.get() != null || waits.isCalledOff();
            }

            @Override
            public void waitsFor(String what) {
                waits.waitsFor(what);
            }

            @Override
            public boolean isUnderWay() {
                return waits.isUnderWay();
            }

            @Override
            public void goesOn() {
                waits.goesOn();
            }

            @Override
            public WaitingTime time() {
                return waits.time();
            }
        };
    }

    /**
     * Runs both halves of a pair and returns when both have ended. If one fails, the other ends at
     * its next wait for a sum at the latest.
     *
     * @param firstHalf begins first, on this thread
     * @throws RuntimeException what failed first, of any type that a half throws
     */
    public void run(Runnable firstHalf, Runnable secondHalf) {
        turn.lock();
        CompletableFuture<Void> other =
                CompletableFuture.runAsync(
                        () -> {
                            turn.lock();
                            attempt(secondHalf);
                        },
                        second);
        attempt(firstHalf);
        other.join();
        switch (failure.getAndSet(null)) {
            case null -> {}
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            case Throwable e -> throw new IllegalStateException(e);
        }
    }

    /** Runs a half while holding the turn, and gives that up in the end. */
    private void attempt(Runnable half) {
        try {
            if (failure.get() == null) {
                half.run();
            }
        } catch (RuntimeException | Error e) {
            Throwable first = failure.get();
            if (first == null) {
                failure.set(e);
            } else {
                first.addSuppressed(e);
            }
        } finally {
            turn.unlock();
        }
    }

    /** Waits without the turn, if the calling strand holds it. */
    void withoutTurn(Runnable wait) {
        if (!turn.isHeldByCurrentThread()) {
            wait.run();
            return;
        }
        turn.unlock();
        try {
            wait.run();
        } finally {
            turn.lock();
        }
    }

    /** Held by a strand that moves its sums. */
    ReentrantLock talk() {
        return talk;
    }

    /** Ends the second strand's thread. */
    @Override
    public void close() {
        second.close();
    }
}
