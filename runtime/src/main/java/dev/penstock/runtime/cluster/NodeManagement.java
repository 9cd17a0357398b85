package dev.penstock.runtime.cluster;

import akka.actor.typed.ActorSystem;
import akka.http.javadsl.ConnectionContext;
import akka.http.javadsl.Http;
import akka.http.javadsl.model.Uri;
import akka.management.cluster.bootstrap.ClusterBootstrap;
import akka.management.javadsl.AkkaManagement;
import akka.management.javadsl.ManagementRouteProviderSettings;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigUtil;
import dev.penstock.runtime.certificates.NodeCertificate;
import dev.penstock.runtime.config.node.ManagementSection;
import dev.penstock.runtime.config.node.NodeConfig;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLContext;

/**
 * A node's endpoints over HTTP: {@code /ready} and {@code /alive} for whoever watches it, and,
 * where nodes find each other by discovery, what Akka's Cluster Bootstrap asks there.
 */
final class NodeManagement {
    /** Name of the guardian's first child, whose answer shows that actors run. */
    static final String MEMBERS = "members";

    private static final Duration START = Duration.ofSeconds(30);
    private static final String BOOTSTRAP = "akka.management.cluster.bootstrap.";
    private static final String LOOKUP = BOOTSTRAP + "contact-point-discovery.";

    private final ManagementSection section;
    private final Optional<SSLContext> tls;
    private final ActorSystem<?> system;

    /**
     * @param system made with these {@link #settings}
     */
    NodeManagement(NodeConfig node, ActorSystem<?> system) {
        this.section = node.management();
        this.tls =
                NodeSystems.files(node.tls())
                        .map(NodeCertificate::read)
                        .map(NodeCertificate::context);
        this.system = system;
    }

    /** Settings of the actor system of a node. */
    static Config settings(NodeConfig node) {
        ManagementSection section = node.management();
        Map<String, Object> settings = new HashMap<>();
        settings.put("akka.management.http.hostname", section.advertised());
        settings.put("akka.management.http.bind-hostname", section.host());
        section.port().ifPresent(port -> settings.put("akka.management.http.port", port));
        String checks = "akka.management.health-checks.";
        settings.put(checks + "check-timeout", "5s"); // a busy machine is no dead one
        settings.put(checks + "readiness-checks.penstock", NodeReadiness.class.getName());
        settings.put(checks + "liveness-checks.penstock", NodeLiveness.class.getName());
        if (section.findsNodes()) {
            settings.put(LOOKUP + "effective-name", section.service());
            settings.put(LOOKUP + "protocol", "");
            settings.put(LOOKUP + "required-contact-point-nr", section.requiredContacts());
            settings.put(BOOTSTRAP + "new-cluster-enabled", node.cluster().role().keepsRuns());
            settings.putAll(discovery(section));
        } else {
            settings.put("akka.management.http.routes.cluster-bootstrap", "");
        }
        return ConfigFactory.parseMap(settings);
    }

    private static Map<String, Object> discovery(ManagementSection section) {
        String method = LOOKUP + "discovery-method";
        return switch (section.discovery()) {
            case NONE -> Map.of();
            // the selector is given whole
            case KUBERNETES ->
                    Map.of(
                            method,
                            "kubernetes-api",
                            "akka.discovery.kubernetes-api.pod-label-selector",
                            "%s");
            case DNS -> Map.of(method, "akka-dns");
            case LISTED ->
                    Map.of(
                            method,
                            "config",
                            "akka.discovery.config.services",
                            Map.of(
                                    ConfigUtil.quoteString(section.service()),
                                    Map.of(
                                            "endpoints",
                                            section.contacts().stream()
                                                    .map(NodeManagement::endpoint)
                                                    .toList())),
                            BOOTSTRAP + "contact-point.filter-on-fallback-port",
                            false);
        };
    }

    private static Map<String, Object> endpoint(String contact) {
        int colon = contact.lastIndexOf(':');
        return Map.of(
                "host",
                contact.substring(0, colon),
                "port",
                Integer.valueOf(contact.substring(colon + 1)));
    }

    /**
     * What a node asks to join, for people.
     *
     * @param seeds that it knows by their addresses
     */
    static List<String> asked(NodeConfig node, List<String> seeds) {
        ManagementSection section = node.management();
        return switch (section.discovery()) {
            case NONE -> seeds;
            case KUBERNETES -> List.of("pods with " + section.service());
            case DNS -> List.of("the addresses of " + section.service());
            case LISTED -> section.contacts();
        };
    }

    /**
     * Listens, if it is to; the endpoints go with the actor system.
     *
     * @return a line for people
     * @throws ClusterException if it cannot listen there
     */
    Optional<String> start() {
        if (!section.isOn()) {
            return Optional.empty();
        }
        // for asking other nodes
        tls.ifPresent(
                context ->
                        Http.get(system)
                                .setDefaultClientHttpsContext(
                                        ConnectionContext.httpsClient(context)));
        Uri bound = await(AkkaManagement.get(system).start(this::secured));
        return Optional.of("says how it is at " + bound + "/ready and /alive");
    }

    private ManagementRouteProviderSettings secured(ManagementRouteProviderSettings settings) {
        return tls.map(ConnectionContext::httpsServer)
                .map(settings::withHttpsConnectionContext)
                .orElse(settings);
    }

    private Uri await(CompletionStage<Uri> binding) {
        try {
            return binding.toCompletableFuture().get(START.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            system.terminate();
            throw new IllegalStateException("interrupted while a node starts", e);
        } catch (ExecutionException | TimeoutException e) {
            system.terminate();
            throw new ClusterException(
                    "expected to listen on %s:%d for /ready and /alive, but that is taken or not an address of this machine; try another management.port, or 0 for a free one"
                            .formatted(section.host(), section.port().orElse(0)),
                    e);
        }
    }

    /** Looks for other nodes and joins them, or founds a cluster if none of them is in one. */
    void join() {
        ClusterBootstrap.get(system).start();
    }
}
