package dev.penstock.runtime.launch;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.certificates.NodeTls;
import java.util.List;

/** Akka's settings for both ways to run. */
final class ActorSystems {
    static final String NAME = "penstock";

    private static final String COMMON =
            """
            akka {
              loglevel = WARNING
              stdout-loglevel = OFF
              logger-startup-timeout = 60 s # a busy machine is no reason to refuse to start
              log-dead-letters = off
              log-dead-letters-during-shutdown = off
              jvm-exit-on-fatal-error = on
              # a run ends by its own protocol; leaving the cluster politely would only take seconds
              coordinated-shutdown.run-by-actor-system-terminate = off
              coordinated-shutdown.run-by-jvm-shutdown-hook = off
              actor.allow-java-serialization = off
              # no peer has actors made here by the name of a class
              remote.deployment { enable-allow-list = on, allowed-actor-classes = [] }
            }
            """;

    private static final String CLUSTER =
            """
            akka {
              actor.provider = cluster
              remote.artery {
                transport = tcp
                canonical { hostname = "127.0.0.1", port = 0 }
                bind.bind-timeout = 20 s # many processes that start on few cores
                advanced.maximum-frame-size = 2 MiB # the times of a rank's ops travel in one message
              }
              cluster {
                jmx.enabled = off
                # all members live on this host and start together
                gossip-interval = 200 ms
                leader-actions-interval = 200 ms
                periodic-tasks-initial-delay = 200 ms
                shutdown-after-unsuccessful-join-seed-nodes = 60 s
                # the supervisor downs whose process has ended; one that only stands still may wake
                # up, and a member once removed could neither come back nor be told to end
                downing-provider-class = ""
                run-coordinated-shutdown-when-down = off
                typed.receptionist.distributed-data {
                  gossip-interval = 200 ms
                  notify-subscribers-interval = 100 ms
                }
              }
            }
            """;

    private ActorSystems() {}

    /** One process, no network. */
    static <T> ActorSystem<T> local(Behavior<T> guardian) {
        Config config = parse(COMMON).withFallback(parse("akka.actor.provider = local"));
        return ActorSystem.create(guardian, NAME, config.withFallback(ConfigFactory.load()));
    }

    /**
     * One member of a cluster on the loopback interface, on a free port.
     *
     * @param seeds addresses of members to join; empty for the first member, which joins itself
     * @param files that all members have and nobody else on this machine
     */
    static <T> ActorSystem<T> clustered(Behavior<T> guardian, List<String> seeds, NodeFiles files) {
        String quoted = String.join(",", seeds.stream().map(seed -> '"' + seed + '"').toList());
        Config config =
                parse("akka.cluster.seed-nodes = [" + quoted + "]")
                        .withFallback(NodeTls.localSettings(files))
                        .withFallback(parse(CLUSTER))
                        .withFallback(parse(COMMON));
        return ActorSystem.create(guardian, NAME, config.withFallback(ConfigFactory.load()));
    }

    private static Config parse(String text) {
        return ConfigFactory.parseString(text);
    }
}
