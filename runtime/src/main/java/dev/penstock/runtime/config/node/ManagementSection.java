package dev.penstock.runtime.config.node;

import dev.penstock.runtime.config.reading.Setting;
import java.util.List;
import java.util.Optional;

/**
 * Section {@code management} of a node's file: where it says over HTTP how it is, and how nodes
 * that know no seed's address find each other there. It has the cluster's TLS, or none where {@code
 * cluster.insecure} allows that.
 *
 * @param port 0 for a free one; empty: nothing listens
 * @param host address to listen on
 * @param advertise address under which other nodes reach these endpoints; empty: {@code host}
 * @param discovery how nodes find each other
 * @param service whom to look up, in the words of the discovery
 * @param contacts the endpoints of seeds, as {@code host:port}, for {@link Discovery#LISTED}
 * @param requiredContacts how many endpoints must answer before a seed founds a cluster
 */
public record ManagementSection(
        @Setting(
                        is = "off",
                        word = "off",
                        range = "[0, 65535]",
                        doc = "port of /ready and /alive; 0: a free one, off: none")
                Optional<Integer> port,
        @Setting(is = "127.0.0.1", doc = "address to listen on") String host,
        @Setting(
                        is = "host",
                        word = "host",
                        doc = "address under which other nodes reach these endpoints")
                Optional<String> advertise,
        @Setting(is = "none", doc = "how nodes find each other without cluster.seeds")
                Discovery discovery,
        @Setting(
                        is = "\"app=penstock,role=seed\"",
                        doc =
                                "whom to look up: with kubernetes labels of the seeds' pods, with dns a name of all seeds")
                String service,
        @Setting(is = "[]", doc = "with listed: the seeds' management endpoints, each as host:port")
                List<String> contacts,
        @Setting(
                        is = "2",
                        range = "[1, 1000]",
                        doc =
                                "endpoints that must answer before a seed founds a cluster; more than half of them all, or there may be two")
                int requiredContacts) {
    public ManagementSection {
        contacts = List.copyOf(contacts);
    }

    /** How nodes find each other. */
    public enum Discovery {
        /** Not at all: seeds are known by their addresses. */
        NONE,
        /** The Kubernetes API lists pods by label. */
        KUBERNETES,
        /** A name stands for the addresses of all seeds. */
        DNS,
        /** The file lists them. */
        LISTED
    }

    /** Whether anything listens. */
    public boolean isOn() {
        return port.isPresent();
    }

    /** Whether nodes find each other over these endpoints. */
    public boolean findsNodes() {
        return discovery != Discovery.NONE;
    }

    /** The address under which other nodes reach these endpoints. */
    public String advertised() {
        return advertise.orElse(host);
    }
}
