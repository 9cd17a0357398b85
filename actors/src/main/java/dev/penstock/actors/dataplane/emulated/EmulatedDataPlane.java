package dev.penstock.actors.dataplane.emulated;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.PeerAddress;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * A data plane whose links are slower than the real ones. The receiver holds a tensor back from its
 * arrival on: that needs one clock only, also where sender and receiver are on different hosts, and
 * keeps the sender as free as on a real link. What the real transport takes itself comes on top, so
 * that emulation is as good as the real links are faster than the emulated ones.
 *
 * <p>The tensors that a rank sends to another leave one after another, whatever they are for.
 * Credits are not delayed. Bytes are never changed or dropped. Any thread.
 */
public final class EmulatedDataPlane implements DataPlane {
    private final DataPlane real;
    private final EmulatedLinks links;
    private final ScheduledThreadPoolExecutor timer;

    private EmulatedDataPlane(DataPlane real, EmulatedLinks links) {
        this.real = real;
        this.links = links;
        this.timer =
                new ScheduledThreadPoolExecutor(
                        1,
                        task ->
                                Thread.ofPlatform()
                                        .name("emulated-links")
                                        .daemon()
                                        .unstarted(task));
    }

    /**
     * Slows a data plane down.
     *
     * @param real closed with the result
     * @return the same one if no link is emulated
     */
    public static DataPlane over(DataPlane real, EmulatedLinks links) {
        return links.areEmulated() ? new EmulatedDataPlane(real, links) : real;
    }

    @Override
    public Endpoint open(Opening opening, FrameListener listener) {
        var deliveries = new Deliveries(links, opening, listener, System::nanoTime, this::after);
        return new EmulatedEndpoint(real.open(opening, deliveries), deliveries);
    }

    private void after(long nanos, Runnable task) {
        try {
            var _ = timer.schedule(task, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException e) {
            if (!timer.isShutdown()) {
                throw e;
            }
        }
    }

    @Override
    public PeerAddress address() {
        return real.address();
    }

    @Override
    public boolean keepsSentTensors() {
        return real.keepsSentTensors();
    }

    /** What bypasses a link would not be slowed down. */
    @Override
    public boolean carriesAll() {
        return true;
    }

    @Override
    public boolean isLost() {
        return real.isLost();
    }

    @Override
    public void relink(String link) {
        real.relink(link);
    }

    @Override
    public void close() {
        timer.shutdownNow();
        real.close();
    }
}
