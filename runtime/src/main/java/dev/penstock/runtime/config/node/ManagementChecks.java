package dev.penstock.runtime.config.node;

import com.typesafe.config.ConfigObject;
import dev.penstock.runtime.config.reading.Problems;
import java.net.InetAddress;
import java.net.UnknownHostException;

/** What a node's section {@code management} must be beside its other sections. */
final class ManagementChecks {
    private static final String SECTION = "management.";

    private final NodeConfig config;
    private final ManagementSection management;
    private final ConfigObject written;
    private final Problems problems;

    private ManagementChecks(NodeConfig config, ConfigObject written, Problems problems) {
        this.config = config;
        this.management = config.management();
        this.written = written;
        this.problems = problems;
    }

    /**
     * Adds what is wrong to the problems.
     *
     * @param written the whole file
     */
    static void check(NodeConfig config, ConfigObject written, Problems problems) {
        var checks = new ManagementChecks(config, written, problems);
        checks.checkAddress();
        if (config.management().findsNodes()) {
            checks.checkDiscovery();
        } else if (!config.management().contacts().isEmpty()) {
            checks.problem(
                    "contacts",
                    "management.discovery = listed",
                    "contacts, and no discovery that reads them",
                    "add it");
        }
    }

    /** The rule of the control plane. */
    private void checkAddress() {
        boolean loopback;
        try {
            loopback = InetAddress.getByName(management.host()).isLoopbackAddress();
        } catch (UnknownHostException e) {
            problem("host", "an address of this machine", management.host(), "check it");
            return;
        }
        if (!loopback && !config.isSecured()) {
            problem(
                    "host",
                    "a loopback address such as 127.0.0.1, or TLS",
                    management.host() + ", which other machines can reach",
                    "give cluster.tls its three files, or set cluster.insecure = true where everyone on that network is trusted");
        }
    }

    private void checkDiscovery() {
        if (management.port().orElse(0) == 0) {
            problem(
                    "port",
                    "a port, at which nodes find each other",
                    management.isOn() ? "a free one, which they cannot know" : "none",
                    "add for example management.port = 8558");
        }
        if (!config.cluster().seeds().isEmpty()) {
            problem(
                    "discovery",
                    "cluster.seeds or a discovery",
                    "both",
                    "remove cluster.seeds (or --cluster), or set management.discovery = none");
        }
        if (management.advertise().isEmpty() && management.host().equals("0.0.0.0")) {
            problem(
                    "advertise",
                    "the address under which other nodes reach these endpoints",
                    "none, and they listen on all",
                    "add management.advertise");
        }
        if (management.discovery() == ManagementSection.Discovery.LISTED) {
            checkContacts();
        }
    }

    private void checkContacts() {
        if (management.contacts().isEmpty()) {
            problem(
                    "contacts",
                    "the seeds' management endpoints",
                    "none",
                    "add for example management.contacts = [\"10.0.0.1:8558\", \"10.0.0.2:8558\"]");
        }
        for (String contact : management.contacts()) {
            if (!NodeLoader.isHostAndPort(contact)) {
                problem("contacts", "host:port", '"' + contact + '"', "write a host and a port");
            }
        }
        if (!management.contacts().isEmpty()
                && management.requiredContacts() > management.contacts().size()) {
            problem(
                    "required-contacts",
                    "at most the %d of management.contacts".formatted(management.contacts().size()),
                    String.valueOf(management.requiredContacts()),
                    "require fewer, or list more");
        }
    }

    private void problem(String key, String expected, String got, String advice) {
        problems.atKey(written, SECTION + key, expected, got, advice);
    }
}
