package dev.penstock.runtime.launch;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
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
import java.util.Map;

/** Links between ranks of one thread: credits and slots as {@link Endpoint} says, without a log. */
final class ThreadlessPlane implements DataPlane {
    private record End(int rank, ChannelKey channel) {}

    private static final class Wire {
        final Inbound receiver;
        final Deque<Integer> free = new ArrayDeque<>();
        final Map<FrameKey, Integer> arrived = new HashMap<>();
        int credits;
        int owed;
        int held;
        long sent;

        Wire(Inbound receiver) {
            this.receiver = receiver;
            this.credits = receiver.credits();
            for (int slot = 0; slot < receiver.slots().size(); slot++) {
                free.add(slot);
            }
        }
    }

    /** By where they end. */
    private final Map<End, Wire> wires = new HashMap<>();

    private int mostUnderWay;

    /** Returns the most tensors that a channel has had on their way, less its credits. */
    int mostBeyondCredits() {
        return mostUnderWay;
    }

    @Override
    public Endpoint open(Opening opening, FrameListener listener) {
        Map<ChannelKey, Integer> receivers = new HashMap<>();
        for (Outbound out : opening.outbound()) {
            receivers.put(out.channel(), out.toRank());
        }
        for (Inbound in : opening.inbound()) {
            wires.put(new End(opening.rank(), in.channel()), new Wire(in));
        }
        return new Endpoint() {
            private End end(ChannelKey channel) {
                return new End(requireNonNull(receivers.get(channel)), channel);
            }

            private Wire out(ChannelKey channel) {
                Wire wire = wires.get(end(channel));
                if (wire == null || wire.receiver.fromRank() != opening.rank()) {
                    throw new AssertionError(
                            "rank %d sends on %s, which is not open"
                                    .formatted(opening.rank(), channel));
                }
                return wire;
            }

            private Wire in(ChannelKey channel) {
                Wire wire = wires.get(new End(opening.rank(), channel));
                if (wire == null) {
                    throw new AssertionError(
                            "rank %d has no %s".formatted(opening.rank(), channel));
                }
                return wire;
            }

            @Override
            public OfferResult offer(FrameKey key, MemorySegment tensor) {
                if (!wires.containsKey(end(key.channel()))) {
                    return OfferResult.NOT_CONNECTED;
                }
                Wire wire = out(key.channel());
                if (wire.credits == 0) {
                    return OfferResult.NO_CREDIT;
                }
                wire.credits--;
                int slot = wire.free.remove();
                wire.receiver.slots().get(slot).copyFrom(tensor);
                wire.arrived.put(key, slot);
                wire.sent++;
                mostUnderWay =
                        Math.max(mostUnderWay, wire.arrived.size() - wire.receiver.credits());
                return OfferResult.SENT;
            }

            @Override
            public int credits(ChannelKey channel) {
                return out(channel).credits;
            }

            @Override
            public long verified(ChannelKey channel) {
                Wire wire = wires.get(end(channel));
                return wire == null ? 0 : wire.sent;
            }

            @Override
            public int arrived(FrameKey key) {
                return in(key.channel()).arrived.getOrDefault(key, -1);
            }

            @Override
            public int take(FrameKey key) {
                Wire wire = in(key.channel());
                Integer slot = wire.arrived.remove(key);
                if (slot == null) {
                    return -1;
                }
                wire.held++;
                if (wire.held > wire.receiver.slots().size() - wire.receiver.credits()) {
                    wire.owed++;
                } else {
                    wire.credits++;
                }
                return slot;
            }

            @Override
            public void release(ChannelKey channel, int slot) {
                Wire wire = in(channel);
                wire.free.add(slot);
                wire.held--;
                if (wire.owed > 0) {
                    wire.owed--;
                    wire.credits++;
                }
            }

            @Override
            public String describe() {
                return "links of one thread";
            }

            @Override
            public void close() {
                opening.inbound()
                        .forEach(
                                channel ->
                                        wires.remove(new End(opening.rank(), channel.channel())));
            }
        };
    }

    @Override
    public PeerAddress address() {
        throw new AssertionError("all ranks are here");
    }

    @Override
    public boolean keepsSentTensors() {
        return false;
    }

    @Override
    public void close() {}
}
