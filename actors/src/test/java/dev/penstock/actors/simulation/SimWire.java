package dev.penstock.actors.simulation;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.PeerAddress;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * All tensors on their way: slots, credits and epochs as the real data plane has them. Frames of a
 * channel arrive in order, all others in any.
 */
final class SimWire {
    private record Place(int rank, int epoch) {}

    private final World world;

    /** Whether every tensor is sent once more at the last moment: it must not change till then. */
    private final boolean sendsAgain;

    /** Where processes have a media driver each and know others by their addresses. */
    private final boolean onHosts;

    private final Map<Place, Port> open = new HashMap<>();
    private String driver = "";

    SimWire(World world, Scenario scenario) {
        this.world = world;
        this.onHosts = scenario.hosts() > 0;
        this.sendsAgain = !scenario.grid().isPipelineAlone();
    }

    /** The media driver dies: every link breaks. */
    void driverDies() {
        driver = "none";
        List.copyOf(open.values()).forEach(port -> port.breaks("the media driver is gone"));
    }

    boolean isDown() {
        return driver.equals("none");
    }

    /** Where the media driver is; empty if it is the first one. */
    String driver() {
        return driver;
    }

    void driverStarts(String directory) {
        driver = directory;
    }

    /** Links of a live rank break. */
    void breakLinksOf(SimProcess process) {
        List.copyOf(open.values()).stream()
                .filter(port -> port.process == process)
                .forEach(port -> port.breaks("a link broke"));
    }

    /** What the peers see of a process that is gone: nothing, or soon a broken link. */
    void gone(SimProcess process) {
        for (Port port : List.copyOf(open.values())) {
            if (port.process == process) {
                open.remove(port.place);
            } else if (world.chance(0.3)) {
                world.after(
                        world.between(0, 4 * World.SECOND), () -> port.breaks("a peer is gone"));
            }
        }
    }

    /** The data plane of a process. */
    DataPlane of(SimProcess process) {
        return new DataPlane() {
            private String link = driver;

            @Override
            public Endpoint open(Opening opening, FrameListener listener) {
                if (!onHosts && !link.equals(driver)) {
                    throw new DataPlaneException("no media driver in '%s'".formatted(link));
                }
                return new Port(process, opening, listener);
            }

            @Override
            public PeerAddress address() {
                throw new DataPlaneException("simulated links have no addresses");
            }

            @Override
            public boolean keepsSentTensors() {
                return sendsAgain;
            }

            @Override
            public void relink(String directory) {
                link = directory;
            }

            @Override
            public void close() {}
        };
    }

    /** The sending side of a channel. */
    private static final class Out {
        final Outbound channel;
        int credits;
        boolean ranOut;
        long sent;
        long verified;
        long lastArrival;

        Out(Outbound channel) {
            this.channel = channel;
            this.credits = channel.credits();
        }
    }

    /** The receiving side of a channel. */
    private static final class In {
        final Inbound channel;
        final Deque<Integer> free = new ArrayDeque<>();
        final Map<FrameKey, Integer> arrived = new HashMap<>();
        int held;
        int owed;
        long verified;

        In(Inbound channel) {
            this.channel = channel;
            for (int slot = 0; slot < channel.slots().size(); slot++) {
                free.add(slot);
            }
        }
    }

    private final class Port implements Endpoint {
        final SimProcess process;
        final Place place;
        private final FrameListener listener;
        private final Map<Integer, PeerAddress> addresses;
        private final Map<ChannelKey, Out> outs = new HashMap<>();
        private final Map<ChannelKey, In> ins = new HashMap<>();
        private boolean closed;
        private boolean broken;

        Port(SimProcess process, Opening opening, FrameListener listener) {
            this.process = process;
            this.listener = listener;
            this.addresses = opening.peers();
            this.place = new Place(opening.rank(), opening.epoch());
            opening.outbound().forEach(each -> outs.put(each.channel(), new Out(each)));
            opening.inbound().forEach(each -> ins.put(each.channel(), new In(each)));
            if (open.put(place, this) != null) {
                world.violated("two %s have links", place);
            }
        }

        void breaks(String why) {
            process.after(
                    world.between(0, 50 * World.MILLISECOND),
                    () -> {
                        if (!closed && !broken) {
                            broken = true;
                            listener.onFailure(new DataPlaneException(why));
                        }
                    });
        }

        @Override
        public OfferResult offer(FrameKey key, MemorySegment tensor) {
            Out out = outs.get(key.channel());
            if (closed || broken || out == null) {
                return new OfferResult.Failed("closed");
            }
            Port peer = open.get(new Place(out.channel.toRank(), place.epoch()));
            if (peer == null
                    || process.isCutOff()
                    || peer.process.isCutOff()
                    || !isWhereItWasToldToBe(peer)) {
                return OfferResult.NOT_CONNECTED;
            }
            if (out.credits == 0) {
                out.ranOut = true;
                return OfferResult.NO_CREDIT;
            }
            if (world.chance(0.05)) {
                return OfferResult.BACK_PRESSURED;
            }
            out.credits--;
            out.sent++;
            MemorySegment payload = sendsAgain ? tensor : copyOf(tensor);
            out.lastArrival =
                    Math.max(
                            out.lastArrival, world.now() + world.between(0, 2 * World.MILLISECOND));
            peer.process.at(out.lastArrival, () -> peer.arrives(key, payload));
            return OfferResult.SENT;
        }

        private boolean isWhereItWasToldToBe(Port peer) {
            return !onHosts
                    || peer.process
                            .info()
                            .address()
                            .equals(Optional.ofNullable(addresses.get(peer.place.rank())));
        }

        private static MemorySegment copyOf(MemorySegment tensor) {
            MemorySegment copy = MemorySegment.ofArray(new long[(int) (tensor.byteSize() + 7) / 8]);
            copy.copyFrom(tensor);
            return copy.asSlice(0, tensor.byteSize());
        }

        private void arrives(FrameKey key, MemorySegment payload) {
            In in = ins.get(key.channel());
            if (closed || broken || in == null) {
                return;
            }
            Integer slot = in.free.poll();
            if (slot == null) {
                world.violated("%s: no slot for %s", place, key);
                return;
            }
            in.channel.slots().get(slot).copyFrom(payload);
            in.arrived.put(key, slot);
            in.verified++;
            if (sendsAgain) {
                tellSender(in, 0);
            }
            listener.onFrame(key);
        }

        @Override
        public int credits(ChannelKey channel) {
            Out out = outs.get(channel);
            return out == null ? 0 : out.credits;
        }

        @Override
        public long verified(ChannelKey channel) {
            Out out = outs.get(channel);
            return out == null ? 0 : sendsAgain ? out.verified : out.sent;
        }

        @Override
        public int arrived(FrameKey key) {
            In in = ins.get(key.channel());
            Integer slot = in == null ? null : in.arrived.get(key);
            return slot == null ? -1 : slot;
        }

        @Override
        public int take(FrameKey key) {
            In in = ins.get(key.channel());
            Integer slot = in == null ? null : in.arrived.remove(key);
            if (in == null || slot == null) {
                return -1;
            }
            in.held++;
            if (in.held > in.channel.slots().size() - in.channel.credits()) {
                in.owed++;
            } else {
                tellSender(in, 1);
            }
            return slot;
        }

        @Override
        public void release(ChannelKey channel, int slot) {
            In in = ins.get(channel);
            if (in == null) {
                throw new DataPlaneException("no such channel: " + channel);
            }
            in.held--;
            in.free.add(slot);
            if (in.owed > 0) {
                in.owed--;
                tellSender(in, 1);
            }
        }

        private void tellSender(In in, int credits) {
            Port sender = open.get(new Place(in.channel.fromRank(), place.epoch()));
            if (sender != null) {
                ChannelKey channel = in.channel.channel();
                long verified = in.verified;
                sender.process.after(
                        world.between(0, World.MILLISECOND),
                        () -> sender.onTold(channel, credits, verified));
            }
        }

        private void onTold(ChannelKey channel, int credits, long verified) {
            Out out = outs.get(channel);
            if (closed || broken || out == null) {
                return;
            }
            boolean news = sendsAgain && verified > out.verified;
            out.credits += credits;
            out.verified = Math.max(out.verified, verified);
            if (news || (out.ranOut && credits > 0)) {
                out.ranOut = false;
                listener.onCredit(channel);
            }
        }

        @Override
        public String describe() {
            return place.toString();
        }

        @Override
        public void close() {
            closed = true;
            open.remove(place, this);
        }
    }
}
