package dev.penstock.actors.dataplane.emulated;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Opening;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.LongSupplier;

/**
 * What has arrived for a rank and is not delivered yet. Hears of arrivals and lets the rank's
 * listener know when they are due. Any thread.
 */
final class Deliveries implements FrameListener {
    /** Does something later. */
    interface Timer {
        void after(long nanos, Runnable task);
    }

    private record UnderWay(int fromRank, long dueNanos) {}

    private final int rank;
    private final FrameListener listener;
    private final LongSupplier clock;
    private final Timer timer;
    private final Map<ChannelKey, Integer> senders = new HashMap<>();
    private final Map<Integer, LinkQueue> links = new TreeMap<>();
    private final Map<FrameKey, UnderWay> underWay = new HashMap<>();
    private boolean closed;

    /**
     * @param clock {@link System#nanoTime}
     */
    Deliveries(
            EmulatedLinks links,
            Opening opening,
            FrameListener listener,
            LongSupplier clock,
            Timer timer) {
        this.rank = opening.rank();
        this.listener = listener;
        this.clock = clock;
        this.timer = timer;
        for (Inbound channel : opening.inbound()) {
            int from = channel.fromRank();
            links.between(from, rank)
                    .ifPresent(
                            link -> {
                                senders.put(channel.channel(), from);
                                long seed = links.seed() + ((long) from << 32) + rank;
                                this.links.putIfAbsent(from, new LinkQueue(link, seed));
                            });
        }
    }

    @Override
    public void onFrame(FrameKey key) {
        throw new IllegalStateException("the bytes of an arrival are not known: " + key);
    }

    @Override
    public void onFrame(FrameKey key, long bytes) {
        Integer from = senders.get(key.channel());
        LinkQueue link = from == null ? null : links.get(from);
        if (from == null || link == null) {
            listener.onFrame(key, bytes);
            return;
        }
        synchronized (this) {
            long now = clock.getAsLong();
            long due = link.send(key, bytes, now);
            underWay.put(key, new UnderWay(from, due));
            timer.after(due - now, () -> whileOpen(() -> listener.onFrame(key, bytes)));
        }
    }

    private synchronized void whileOpen(Runnable call) {
        if (!closed) {
            call.run();
        }
    }

    /** Whether a tensor that has arrived is delivered. */
    synchronized boolean isDelivered(FrameKey key) {
        if (!senders.containsKey(key.channel())) {
            return true;
        }
        UnderWay sent = underWay.get(key);
        return sent != null && sent.dueNanos - clock.getAsLong() <= 0;
    }

    /** Forgets a tensor that the rank has taken. */
    synchronized void taken(FrameKey key) {
        underWay.remove(key);
    }

    @Override
    public void onCredit(ChannelKey channel) {
        listener.onCredit(channel);
    }

    /** After what the peer has sent before. */
    @Override
    public void onPeerClosed(int peer) {
        LinkQueue link = links.get(peer);
        if (link == null) {
            listener.onPeerClosed(peer);
            return;
        }
        synchronized (this) {
            long now = clock.getAsLong();
            long last =
                    underWay.values().stream()
                            .filter(sent -> sent.fromRank == peer)
                            .mapToLong(sent -> sent.dueNanos - now)
                            .max()
                            .orElse(0);
            timer.after(Math.max(0, last), () -> whileOpen(() -> listener.onPeerClosed(peer)));
        }
    }

    @Override
    public void onFailure(DataPlaneException failure) {
        listener.onFailure(failure);
    }

    /**
     * Describes in words what links are carrying to this rank: one line per link; empty if nothing.
     */
    synchronized Optional<String> describe() {
        long now = clock.getAsLong();
        var text = new StringBuilder();
        links.forEach(
                (from, link) -> {
                    long[] waits =
                            underWay.values().stream()
                                    .filter(sent -> sent.fromRank == from)
                                    .mapToLong(sent -> sent.dueNanos - now)
                                    .filter(wait -> wait > 0)
                                    .sorted()
                                    .toArray();
                    if (waits.length > 0) {
                        text.append(text.isEmpty() ? "" : "; ")
                                .append(
                                        String.format(
                                                Locale.ROOT,
                                                "the emulated link from rank %d to rank %d (%s)"
                                                        + " delivers the next of %d tensors in"
                                                        + " %.2f s",
                                                from,
                                                rank,
                                                link.link(),
                                                waits.length,
                                                waits[0] / 1e9));
                    }
                });
        return text.isEmpty() ? Optional.empty() : Optional.of(text.toString());
    }

    /** Afterwards the listener hears nothing that was delayed. */
    synchronized void close() {
        closed = true;
        underWay.clear();
    }
}
