package dev.penstock.runtime.launch;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Adapter;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.certificates.NodeTls;

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

    /**
     * Processes of one host, each of which talks to the supervisor alone. They are no members of a
     * cluster: the supervisor's process starts them and sees them end, and a membership would have
     * each of them connect to each other.
     */
    private static final String REMOTE =
            """
            akka {
              actor.provider = remote
              remote.artery {
                canonical { hostname = "127.0.0.1", port = 0 }
                bind.bind-timeout = 20 s # many processes that start on few cores
                advanced {
                  maximum-frame-size = 2 MiB # the times of a rank's ops travel in one message
                  inbound-lanes = 1
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
     * One of the processes of a run on this host: on the loopback interface, on a free port.
     *
     * @param files that all of them have and nobody else on this machine
     */
    static <T> ActorSystem<T> remote(Behavior<T> guardian, NodeFiles files) {
        Config config =
                NodeTls.localSettings(files)
                        .withFallback(parse(REMOTE))
                        .withFallback(parse(COMMON));
        return ActorSystem.create(guardian, NAME, config.withFallback(ConfigFactory.load()));
    }

    /** Where others reach it. */
    static String address(ActorSystem<?> system) {
        return Adapter.toClassic(system).provider().getDefaultAddress().toString();
    }

    private static Config parse(String text) {
        return ConfigFactory.parseString(text);
    }
}
