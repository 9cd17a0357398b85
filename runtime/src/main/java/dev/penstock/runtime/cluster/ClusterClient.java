package dev.penstock.runtime.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Props;
import akka.actor.typed.javadsl.AskPattern;
import akka.actor.typed.javadsl.Behaviors;
import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.Greeting;
import dev.penstock.actors.cluster.Identity;
import dev.penstock.actors.cluster.TextSource;
import dev.penstock.runtime.certificates.CertificatesException;
import dev.penstock.runtime.certificates.NodeCertificate;
import dev.penstock.runtime.certificates.NodeFiles;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Talks to a cluster from outside: no member, so that its coming and going moves nothing there.
 * Seeds answer at an address of this machine, which they must be able to reach.
 */
public final class ClusterClient implements AutoCloseable {
    private static final Duration CONNECT = Duration.ofSeconds(3);
    private static final Duration GREETING = Duration.ofSeconds(10);
    private static final Duration ANSWER = Duration.ofSeconds(20);

    /** A seed reads the data before it answers. */
    private static final Duration SUBMISSION = Duration.ofMinutes(10);

    private final ActorSystem<Void> system;
    private final List<ActorRef<ClusterRuns.Command>> desks;

    private ClusterClient(ActorSystem<Void> system, List<ActorRef<ClusterRuns.Command>> desks) {
        this.system = system;
        this.desks = desks;
    }

    /**
     * Finds a seed that answers.
     *
     * @param seeds as {@code host:port}; the others are for when the first is gone
     * @param insecure allows to listen on an address that other machines reach, without TLS
     * @param tls this client's certificate, where the cluster has TLS
     * @throws ClusterException if none answers, or another version does
     */
    public static ClusterClient connect(
            List<String> seeds, boolean insecure, Optional<NodeFiles> tls) {
        List<String> failures = new ArrayList<>();
        boolean answered = false;
        for (String seed : seeds) {
            Optional<InetAddress> local = localAddressTowards(seed, failures);
            if (local.isEmpty()) {
                continue;
            }
            if (!local.get().isLoopbackAddress() && !insecure && tls.isEmpty()) {
                throw new ClusterException(
                        "expected a seed on this machine, --certificate, or --insecure: %s is reached from %s, where other machines can reach this client as well"
                                .formatted(seed, local.get().getHostAddress()));
            }
            String address = local.get().getHostAddress();
            tls.ifPresent(files -> requireGood(files, address));
            ActorSystem<Void> system = NodeSystems.client(Behaviors.empty(), address, tls);
            try {
                Optional<String> difference = greet(system, seed);
                if (difference.isEmpty()) {
                    return new ClusterClient(
                            system,
                            fromThere(seeds, seed).map(each -> desk(system, each)).toList());
                }
                answered = true;
                failures.add(difference.get());
            } catch (ClusterException e) {
                boolean ofOneUser = tls.isEmpty() && local.get().isLoopbackAddress();
                failures.add(e.getMessage() + (ofOneUser ? ", or it is another user's" : ""));
            }
            system.terminate();
        }
        throw new ClusterException(
                "expected a seed at %s: %s%s"
                        .formatted(
                                String.join(", ", seeds),
                                String.join("; ", failures),
                                answered
                                        ? ""
                                        : "; start one with penstock node sample-configs/cluster/seed.conf"));
    }

    /**
     * The one that answers comes first, then those that were not asked, then those that are gone.
     */
    private static Stream<String> fromThere(List<String> seeds, String first) {
        int at = seeds.indexOf(first);
        return Stream.concat(seeds.stream().skip(at), seeds.stream().limit(at));
    }

    /**
     * Seeds answer over connections that they open, so they must accept this process by name.
     *
     * @throws ClusterException saying all that they would refuse
     */
    static void requireGood(NodeFiles files, String host) {
        List<String> problems;
        try {
            problems = NodeCertificate.read(files).problemsAt(host);
        } catch (CertificatesException e) {
            throw new ClusterException(String.valueOf(e.getMessage()), e);
        }
        if (!problems.isEmpty()) {
            throw new ClusterException(
                    "%s: %s; make another with penstock certs add"
                            .formatted(files.certificate(), String.join("; ", problems)));
        }
    }

    private static Optional<InetAddress> localAddressTowards(String seed, List<String> failures) {
        int colon = seed.lastIndexOf(':');
        String host = seed.substring(0, colon);
        int port = Integer.parseInt(seed.substring(colon + 1));
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(host, port), (int) CONNECT.toMillis());
            return Optional.of(socket.getLocalAddress());
        } catch (IOException e) {
            failures.add("%s does not answer (%s)".formatted(seed, e.getMessage()));
            return Optional.empty();
        }
    }

    /** Why this client and a seed cannot work together; empty if they can. */
    private static Optional<String> greet(ActorSystem<Void> system, String seed) {
        Identity self =
                NodeSystems.identity(
                        "", "this client (pid %d)".formatted(ProcessHandle.current().pid()));
        Identity there = identityAt(system, self, seed);
        Identity here =
                new Identity(there.clusterId(), self.protocol(), self.registry(), self.process());
        return here.differenceFrom(there);
    }

    /**
     * Why a node cannot work with any of these seeds, as far as they answer.
     *
     * @param address of this machine, where they can reach it
     * @param tls the node's certificate, where the cluster has TLS
     */
    static Optional<String> differenceFrom(
            Identity self, List<String> seeds, String address, Optional<NodeFiles> tls) {
        ActorSystem<Void> system = NodeSystems.client(Behaviors.empty(), address, tls);
        try {
            for (String seed : seeds) {
                Optional<String> difference = self.differenceFrom(identityAt(system, self, seed));
                if (difference.isPresent()) {
                    return difference;
                }
            }
            return Optional.empty();
        } catch (ClusterException e) {
            return Optional.empty();
        } finally {
            system.terminate();
        }
    }

    private static Identity identityAt(ActorSystem<Void> system, Identity self, String seed) {
        var answered = new CompletableFuture<String>();
        ActorRef<String> listener =
                system.systemActorOf(
                        Behaviors.receiveMessage(
                                text -> {
                                    answered.complete(text);
                                    return Behaviors.stopped();
                                }),
                        "greeting-listener",
                        Props.empty());
        ActorRefResolver resolver = ActorRefResolver.get(system);
        ActorRef<String> greeting =
                resolver.resolveActorRef(NodeProcess.address(seed) + "/user/" + Greeting.ACTOR);
        greeting.tell(Greeting.ask(self, resolver.toSerializationFormat(listener)));
        String answer = await(answered, GREETING, "no Penstock seed answers at " + seed);
        return Greeting.read(answer);
    }

    private static ActorRef<ClusterRuns.Command> desk(ActorSystem<Void> system, String seed) {
        return ActorRefResolver.get(system)
                .resolveActorRef(NodeProcess.address(seed) + "/user/" + NodeProcess.FRONT_DESK);
    }

    /** Submits a run; waits until the seed has made or refused it. */
    public ClusterRuns.SubmitAnswer submit(Submission submission) {
        return submit(submission.text());
    }

    /** Has a model served; waits until the seed has opened or refused it. */
    public ClusterRuns.SubmitAnswer submit(ServeOrder order) {
        return submit(order.text());
    }

    private ClusterRuns.SubmitAnswer submit(String text) {
        ActorRef<TextSource.Command> source =
                system.systemActorOf(TextSource.of(text), "submission", Props.empty());
        return ask(replyTo -> new ClusterRuns.Submit(source, replyTo), SUBMISSION);
    }

    /** All runs and nodes of the cluster. */
    public ClusterRuns.RunList list() {
        return ask(ClusterRuns.ListRuns::new, ANSWER);
    }

    /** Asks a run to finish its step, save and end. */
    public ClusterRuns.StopAnswer stop(String run) {
        return ask(replyTo -> new ClusterRuns.StopRun(run, replyTo), ANSWER);
    }

    /** Asks for a run to be spread over all nodes that have room. */
    public ClusterRuns.RebalanceAnswer rebalance(String run) {
        return ask(replyTo -> new ClusterRuns.RebalanceRun(run, replyTo), ANSWER);
    }

    /**
     * Follows a run until this client is closed.
     *
     * @return what happens, in its order
     */
    public BlockingQueue<FollowEvent> follow(String run) {
        var events = new LinkedBlockingQueue<FollowEvent>();
        system.systemActorOf(RunFollower.of(run, desks, events), "follower", Props.empty());
        return events;
    }

    private <T> T ask(Function<ActorRef<T>, ClusterRuns.Command> question, Duration limit) {
        CompletableFuture<T> answer =
                AskPattern.ask(desks.getFirst(), question::apply, limit, system.scheduler())
                        .toCompletableFuture();
        return await(
                answer,
                limit.plusSeconds(1),
                "the seed answered the greeting and nothing since: none keeps the cluster's runs; try again when its log says that one does, or name another seed with --cluster");
    }

    private static <T> T await(CompletableFuture<T> answer, Duration limit, String otherwise) {
        try {
            return answer.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ClusterException("interrupted while waiting for a seed", e);
        } catch (ExecutionException | CompletionException | TimeoutException e) {
            throw new ClusterException(
                    "%s (waited %d s)".formatted(otherwise, limit.toSeconds()), e);
        }
    }

    @Override
    public void close() {
        system.terminate();
    }
}
