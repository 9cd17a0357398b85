package dev.penstock.actors.node;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.serialization.WireMessage;
import java.util.Optional;

/**
 * What a node says of itself.
 *
 * @param name for people
 * @param uid of its membership in a cluster, which tells it from others with its name and number; 0
 *     where all processes of a run are on one host
 * @param version of the program that the process runs, for people
 * @param rank the only rank that this node was started for; empty if it takes any
 * @param spare whether it waits, warm, for a rank whose process dies
 * @param address where its data plane is reached; empty in a run whose processes all use one media
 *     driver
 */
public record NodeInfo(
        String name,
        long pid,
        long uid,
        String version,
        Optional<Integer> rank,
        boolean spare,
        Optional<PeerAddress> address)
        implements WireMessage {
    /** Names the process: nodes with equal ones live and die together. */
    public String process() {
        return process(name, pid, uid);
    }

    /** The same of a node that has not said who it is. */
    public static String process(String name, long pid, long uid) {
        return name + '/' + pid + (uid == 0 ? "" : "/" + Long.toUnsignedString(uid));
    }

    /** The membership that a process was named with; 0 if with none. */
    public static long uid(String process) {
        String[] parts = process.split("/", -1);
        return parts.length < 3 ? 0 : Long.parseUnsignedLong(parts[parts.length - 1]);
    }
}
