package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Links between ranks of one test: credits and slots as {@link Endpoint} says, without a log. */
final class MemoryLinks {
    private static final class Wire {
        private final Inbound receiver;
        private final Deque<Integer> free = new ArrayDeque<>();
        private final Map<FrameKey, Integer> arrived = new HashMap<>();
        private int credits;
        private int owed;
        private int held;
        private long sent;

        private Wire(Inbound receiver) {
            this.receiver = receiver;
            this.credits = receiver.credits();
            for (int slot = 0; slot < receiver.slots().size(); slot++) {
                free.add(slot);
            }
        }
    }

    private final Map<ChannelKey, Wire> wires = new HashMap<>();

    /** Answers to the next offers of any rank, before the wires are asked. */
    final Deque<OfferResult> nextAnswers = new ArrayDeque<>();

    /** How many offers were made in all, whatever the answer. */
    int offers;

    void open(List<Inbound> channels) {
        channels.forEach(channel -> wires.put(channel.channel(), new Wire(channel)));
    }

    private Wire wire(ChannelKey channel) {
        return Objects.requireNonNull(wires.get(channel), () -> "nobody opened " + channel);
    }

    /** Whether every slot is free and every credit is back with its sender. */
    boolean isAtRest() {
        return wires.values().stream()
                .allMatch(
                        wire ->
                                wire.credits == wire.receiver.credits()
                                        && wire.free.size() == wire.receiver.slots().size());
    }

    Endpoint endpoint() {
        return new Endpoint() {
            @Override
            public OfferResult offer(FrameKey key, MemorySegment tensor) {
                offers++;
                OfferResult answer = nextAnswers.poll();
                if (answer != null) {
                    return answer;
                }
                Wire wire = wire(key.channel());
                if (wire.credits == 0) {
                    return OfferResult.NO_CREDIT;
                }
                wire.credits--;
                int slot = wire.free.remove();
                wire.receiver.slots().get(slot).copyFrom(tensor);
                wire.arrived.put(key, slot);
                wire.sent++;
                return OfferResult.SENT;
            }

            @Override
            public int credits(ChannelKey channel) {
                return wire(channel).credits;
            }

            @Override
            public long verified(ChannelKey channel) {
                return wire(channel).sent;
            }

            @Override
            public int arrived(FrameKey key) {
                return wire(key.channel()).arrived.getOrDefault(key, -1);
            }

            @Override
            public int take(FrameKey key) {
                Wire wire = wire(key.channel());
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
                Wire wire = wire(channel);
                wire.free.add(slot);
                wire.held--;
                if (wire.owed > 0) {
                    wire.owed--;
                    wire.credits++;
                }
            }

            @Override
            public String describe() {
                return "links in memory";
            }

            @Override
            public void close() {}
        };
    }
}
