package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Judges the channels that an endpoint is opened with; collects all problems. */
final class ChannelChecks {
    private ChannelChecks() {}

    static void require(int rank, List<Inbound> inbound, List<Outbound> outbound) {
        List<String> problems = new ArrayList<>();
        Set<ChannelKey> seen = new HashSet<>();
        for (Inbound channel : inbound) {
            String name = "inbound " + ChannelNames.of(channel.channel());
            if (!seen.add(channel.channel())) {
                problems.add(name + " is given twice");
            }
            checkCredits(name, channel.credits(), problems);
            checkSlots(name, channel, problems);
        }
        seen.clear();
        for (Outbound channel : outbound) {
            String name = "outbound " + ChannelNames.of(channel.channel());
            if (!seen.add(channel.channel())) {
                problems.add(name + " is given twice");
            }
            checkCredits(name, channel.credits(), problems);
        }
        if (!problems.isEmpty()) {
            throw new DataPlaneException(
                    "open rank %d: %s".formatted(rank, String.join("; ", problems)));
        }
    }

    private static void checkCredits(String name, int credits, List<String> problems) {
        if (credits < 1) {
            problems.add("%s: expected at least 1 credit, got %d".formatted(name, credits));
        }
    }

    private static void checkSlots(String name, Inbound channel, List<String> problems) {
        if (channel.slots().size() < channel.credits()) {
            problems.add(
                    "%s: expected at least as many slots as its %d credits, got %d"
                            .formatted(name, channel.credits(), channel.slots().size()));
        }
        if (channel.slots().stream().anyMatch(slot -> slot.byteSize() == 0 || slot.isReadOnly())) {
            problems.add(name + ": a slot is empty or read-only");
        }
    }
}
