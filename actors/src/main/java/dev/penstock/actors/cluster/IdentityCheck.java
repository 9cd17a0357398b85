package dev.penstock.actors.cluster;

import akka.cluster.ConfigValidation;
import akka.cluster.Invalid;
import akka.cluster.JoinConfigCompatChecker;
import akka.cluster.Valid$;
import com.typesafe.config.Config;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Keeps a node of another version or another cluster from joining. Made by Akka, on both sides of a
 * join: each compares what the other sent with its own, and says in its log what differs.
 */
public final class IdentityCheck extends JoinConfigCompatChecker {
    private static final Logger LOG = LoggerFactory.getLogger(IdentityCheck.class);
    private static final String SECTION = "penstock.identity.";
    private static final List<String> KEYS =
            List.of(
                    Identity.CLUSTER_ID,
                    Identity.PROTOCOL_KEY,
                    Identity.REGISTRY,
                    Identity.PROCESS);

    @Override
    public Seq<String> requiredKeys() {
        return CollectionConverters.asScala(KEYS.stream().map(key -> SECTION + key).toList())
                .toSeq();
    }

    @Override
    public ConfigValidation check(Config theirs, Config ours) {
        Optional<String> difference = identity(ours).differenceFrom(identity(theirs));
        if (difference.isEmpty()) {
            return Valid$.MODULE$;
        }
        LOG.warn("refused to join: {}", difference.get());
        return new Invalid(CollectionConverters.asScala(List.of(difference.get())).toSeq());
    }

    /** Who a configuration belongs to. */
    static Identity identity(Config config) {
        Map<String, String> facts = new LinkedHashMap<>();
        for (String key : KEYS) {
            if (config.hasPath(SECTION + key)) {
                facts.put(key, config.getString(SECTION + key));
            }
        }
        return Identity.of(facts);
    }
}
