package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Schedule;
import java.util.HashMap;
import java.util.Map;

/**
 * How many tensors may be in flight in every channel: sent, and not yet received. A sender takes a
 * credit when it sends, the receiver returns it when it receives.
 *
 * @param otherwise capacity of channels that are not listed; {@link #UNBOUNDED} for no bound
 */
public record InFlight(Map<Channel, Integer> capacities, int otherwise) {
    /** A capacity that is never reached. */
    public static final int UNBOUNDED = Integer.MAX_VALUE;

    public InFlight {
        capacities = Map.copyOf(capacities);
        if (otherwise < 1 || capacities.values().stream().anyMatch(capacity -> capacity < 1)) {
            throw new IllegalArgumentException(
                    "a channel needs a capacity of at least 1, got %s, otherwise %d"
                            .formatted(capacities, otherwise));
        }
    }

    /** Senders never wait. */
    public static InFlight unbounded() {
        return new InFlight(Map.of(), UNBOUNDED);
    }

    /** The same capacity everywhere. */
    public static InFlight uniform(int capacity) {
        return new InFlight(Map.of(), capacity);
    }

    /**
     * The smallest capacities with which every op of a lowered schedule starts as early as with
     * unbounded channels, when a forward costs 1, a backward 2 and a transfer next to nothing: the
     * most tensors that such a run has in flight at a time. Whether a schedule hangs does not
     * depend on costs, so it hangs with these capacities only if it hangs with any.
     */
    public static InFlight auto(Schedule lowered) {
        return new InFlight(InFlightCount.of(lowered), 1);
    }

    public int capacity(Channel channel) {
        return capacities.getOrDefault(channel, otherwise);
    }

    /** The larger capacity of both, channel by channel: enough for two schedules in turn. */
    public InFlight max(InFlight other) {
        var larger = new HashMap<Channel, Integer>();
        capacities.keySet().forEach(channel -> larger.put(channel, 0));
        other.capacities.keySet().forEach(channel -> larger.put(channel, 0));
        larger.replaceAll((channel, _) -> Math.max(capacity(channel), other.capacity(channel)));
        return new InFlight(larger, Math.max(otherwise, other.otherwise));
    }
}
