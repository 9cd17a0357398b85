package dev.penstock.runtime.dashboard;

import dev.penstock.runtime.events.EventLogReader;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Follows a run's event log and hands what is new to whoever subscribed. Thread-safe. */
final class RunFeed implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RunFeed.class);
    private static final Duration PAUSE = Duration.ofMillis(250);
    private static final Duration LAST_LOOK = Duration.ofSeconds(1);
    private static final int UPDATES = 64;

    private final Duration pause;
    private final RunView view;
    private final EventLogReader reader;
    private final Set<Subscription> subscriptions = ConcurrentHashMap.newKeySet();
    private final CountDownLatch caughtUp = new CountDownLatch(1);
    private final Thread follower;
    private volatile boolean ended;
    private boolean failed;

    /**
     * Somebody who watches, on the thread that subscribed; slow ones lose their place, even in the
     * middle of a write that does not end, and have to begin anew.
     */
    final class Subscription implements AutoCloseable {
        private final BlockingQueue<RunView.Update> updates = new ArrayBlockingQueue<>(UPDATES);
        private final Thread viewer = Thread.currentThread();

        /**
         * The next update, or a bare head after this long without one.
         *
         * @throws InterruptedException if the server ends, or the viewer was too slow
         */
        RunView.Update next(Duration patience) throws InterruptedException {
            RunView.Update update = updates.poll(patience.toMillis(), TimeUnit.MILLISECONDS);
            return update == null ? view.quiet() : update;
        }

        /** Whether all was told that there ever will be: close it then. */
        boolean isOver() {
            return ended && updates.isEmpty();
        }

        @Override
        public void close() {
            subscriptions.remove(this);
        }
    }

    RunFeed(RunDirectory directory) {
        this(directory, PAUSE);
    }

    /**
     * @param pause between two looks into the log
     */
    RunFeed(RunDirectory directory, Duration pause) {
        this.pause = pause;
        this.view = new RunView(directory.path());
        this.reader = new EventLogReader(directory.events());
        this.follower = Thread.ofVirtual().name("dashboard-feed").start(this::follow);
    }

    /** What is known; waits for the first reading of the log, for this long at most. */
    RunView view(Duration patience) throws InterruptedException {
        if (!caughtUp.await(patience.toMillis(), TimeUnit.MILLISECONDS)) {
            LOG.debug("the event log is still being read");
        }
        return view;
    }

    Subscription subscribe() {
        var subscription = new Subscription();
        subscriptions.add(subscription);
        return subscription;
    }

    int subscribers() {
        return subscriptions.size();
    }

    /** Looks into the log a last time: who watches hears how the run ended. */
    @Override
    public void close() {
        follower.interrupt();
        try {
            if (follower.join(LAST_LOOK)) {
                poll();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        ended = true;
        publish(view.quiet()); // wakes who waits
    }

    private void follow() {
        try {
            while (!Thread.currentThread().isInterrupted()) {
                poll();
                caughtUp.countDown();
                Thread.sleep(pause);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void poll() {
        try {
            var news = new boolean[1];
            reader.poll(
                    event -> {
                        news[0] = true;
                        view.apply(event);
                    });
            if (news[0]) {
                publish(view.update());
            }
            failed = false;
        } catch (IOException | RuntimeException e) {
            if (!failed) {
                LOG.warn("the dashboard cannot read the event log and tries again", e);
            }
            failed = true;
        }
    }

    private void publish(RunView.Update update) {
        for (Subscription subscription : List.copyOf(subscriptions)) {
            if (!subscription.updates.offer(update)) {
                subscriptions.remove(subscription);
                subscription.viewer.interrupt();
            }
        }
    }
}
