package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.TestProbe;
import akka.actor.typed.ActorRef;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.supervisor.TestPlans;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import javax.crypto.SecretKey;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A node that is told things twice, or by a seed that was replaced. */
class ClusterNodeTest {
    private static final String RUN = "run-7f";
    private static final String HERE = "akka://penstock@a:1";
    private static final Duration QUIET = Duration.ofMillis(300);

    private final ActorTestKit kit = ActorTestKit.create();
    private final AtomicInteger joined = new AtomicInteger();
    private final AtomicInteger drivers = new AtomicInteger();
    private final AtomicInteger closed = new AtomicInteger();
    private final AtomicBoolean hosts = new AtomicBoolean();
    private final AtomicReference<String> usedDriver = new AtomicReference<>("");
    private final AtomicReference<Consumer<String>> onDeath = new AtomicReference<>();
    private final TestProbe<ClusterNode.Report> seed = kit.createTestProbe();
    private final TestProbe<ClusterNode.Report> another = kit.createTestProbe();
    private final ActorRef<ClusterNode.Command> node =
            kit.spawn(
                    ClusterNode.create(
                            new NodeOffer("a", HERE, "host", 1, 7, "0.1", List.of("cpu"), 1, 1),
                            (_, _) -> {
                                joined.incrementAndGet();
                                return new HostedRunOfTest();
                            }));

    private final class HostedRunOfTest implements HostedRun {
        @Override
        public String planHash() {
            return "hash";
        }

        @Override
        public Duration patience() {
            return Duration.ofMinutes(1);
        }

        @Override
        public Path startDriver(Consumer<String> told) {
            onDeath.set(told);
            return Path.of("driver-" + drivers.incrementAndGet());
        }

        @Override
        public RankResources resources(Path driverDirectory, Optional<SecretKey> key) {
            if (!hosts.get()) {
                throw new IllegalStateException("no ranks here");
            }
            usedDriver.set(driverDirectory.toString());
            return SimHostedRun.resources(
                    TestPlans.chain(1), () -> new PeerAddress("host", usedDriver.get(), ""));
        }

        @Override
        public void close() {
            closed.incrementAndGet();
        }
    }

    @AfterEach
    void shutDown() {
        kit.shutdownTestKit();
    }

    private ClusterNode.OpenRun open(long order) {
        return open(order, 1, seed);
    }

    private static ClusterNode.OpenRun open(
            long order, long term, TestProbe<ClusterNode.Report> from) {
        return new ClusterNode.OpenRun(RUN, order, "runs/run", "hash", true, term, from.getRef());
    }

    private ClusterNode.HostRanks host(TestProbe<ClusterNode.Report> from, long order) {
        return new ClusterNode.HostRanks(
                RUN, order, List.of(0), "driver-1", Optional.empty(), from.getRef());
    }

    private ClusterNode.HostRanks hostNone(long order) {
        return new ClusterNode.HostRanks(
                RUN, order, List.of(), "driver-1", Optional.empty(), seed.getRef());
    }

    /**
     * A seed that stood still finds, when it goes on, that its nodes keep their line to another:
     * none of them is dead.
     */
    @Test
    void aNodeThatMovesToAnotherSeedIsNotDeadForTheFirst() throws Exception {
        BlockingQueue<String> cutAtFirst = new LinkedBlockingQueue<>();
        BlockingQueue<String> cutAtSecond = new LinkedBlockingQueue<>();
        TestProbe<ClusterNode.Introduction> answers = kit.createTestProbe();
        try (HostWatch first = HostWatch.open(cutAtFirst::add);
                HostWatch second = HostWatch.open(cutAtSecond::add)) {
            for (HostWatch seedOf : List.of(first, second)) {
                node.tell(new ClusterNode.Introduce("host", seedOf.address(), answers.getRef()));
                answers.receiveMessage();
            }

            assertThat(cutAtFirst.poll(QUIET.toMillis(), TimeUnit.MILLISECONDS)).isNull();
            kit.stop(node);
            assertThat(cutAtSecond.poll(10, TimeUnit.SECONDS)).isEqualTo("a/1/7");
        }
        assertThat(cutAtFirst).isEmpty();
    }

    @Test
    void anOrderThatWasDoneIsAnsweredAgainAndNotDoneAgain() {
        var opened = new ClusterNode.RunOpened(HERE, 1, "driver-1");
        var refused = new ClusterNode.RunRefused(HERE, 2, "no ranks here");
        var started = new ClusterNode.DriverStarted(HERE, 3, "driver-2");
        for (int time = 1; time <= 2; time++) {
            node.tell(open(1));
            seed.expectMessage(opened);
            node.tell(host(seed, 2));
            seed.expectMessage(refused);
            node.tell(new ClusterNode.StartDriver(RUN, 3, seed.getRef()));
            seed.expectMessage(started);
        }

        assertThat(joined).hasValue(1);
        assertThat(drivers).hasValue(2);
    }

    @Test
    void aNewOrderToOpenTheRunReplacesTheShare() {
        node.tell(open(1));
        seed.expectMessage(new ClusterNode.RunOpened(HERE, 1, "driver-1"));

        node.tell(open(2));

        seed.expectMessage(new ClusterNode.RunOpened(HERE, 2, "driver-2"));
        seed.awaitAssert(
                () -> {
                    assertThat(closed).hasValue(1);
                    return true;
                });
    }

    /** It stood still, and another one has the run by now. */
    @Test
    void aSeedThatWasReplacedIsNotHeard() {
        node.tell(open(1));
        seed.expectMessage(new ClusterNode.RunOpened(HERE, 1, "driver-1"));

        node.tell(host(another, 1));
        node.tell(new ClusterNode.StartDriver(RUN, 2, another.getRef()));
        node.tell(new ClusterNode.CloseRun(RUN, another.getRef()));

        another.expectNoMessage(QUIET);
        assertThat(drivers).hasValue(1);
        assertThat(closed).hasValue(0);
        node.tell(new ClusterNode.CloseRun(RUN, seed.getRef()));
        seed.awaitAssert(
                () -> {
                    assertThat(closed).hasValue(1);
                    return true;
                });
    }

    @Test
    void aSeedThatWasReplacedDoesNotReplaceAShare() {
        node.tell(open(1, 2, another));
        another.expectMessage(new ClusterNode.RunOpened(HERE, 1, "driver-1"));

        node.tell(open(7, 1, seed));
        node.tell(new ClusterNode.AdoptRun(RUN, 1, seed.getRef()));

        seed.expectNoMessage(QUIET);
        assertThat(closed).hasValue(0);
        node.tell(new ClusterNode.StartDriver(RUN, 2, another.getRef()));
        another.expectMessage(new ClusterNode.DriverStarted(HERE, 2, "driver-2"));
    }

    @Test
    void thatNothingOfARunIsHereIsSaidToWhoeverHasOrdersForIt() {
        node.tell(new ClusterNode.CloseRun(RUN, seed.getRef()));
        seed.expectMessage(new ClusterNode.ShareAbsent(HERE));

        node.tell(host(seed, 4));
        seed.expectMessage(new ClusterNode.ShareGone(HERE, 4));
    }

    @Test
    void aDriverThatDiedIsNotTheNodesOwnWhenAnotherSeedAsks() {
        hosts.set(true);
        node.tell(open(1));
        seed.expectMessage(new ClusterNode.RunOpened(HERE, 1, "driver-1"));
        node.tell(hostNone(2));
        seed.expectMessage(new ClusterNode.RanksHosted(HERE, 2));
        onDeath.get().accept("kill -9");
        var died = new ClusterNode.DriverDied(HERE, "driver-1", "kill -9");
        seed.expectMessage(died);

        node.tell(new ClusterNode.AdoptRun(RUN, 2, another.getRef()));

        another.expectMessage(
                new ClusterNode.ShareKept(
                        HERE, List.of(), List.of("driver-1"), "driver-1", false, Optional.empty()));
        another.expectMessage(died);
    }

    @Test
    void anotherSeedHearsOfEveryDriverThatRanksHaveNamed() {
        hosts.set(true);
        node.tell(open(1));
        seed.expectMessage(new ClusterNode.RunOpened(HERE, 1, "driver-1"));
        node.tell(hostNone(2));
        seed.expectMessage(new ClusterNode.RanksHosted(HERE, 2));
        usedDriver.set("another");
        node.tell(hostNone(3));
        seed.expectMessage(new ClusterNode.RanksHosted(HERE, 3));

        node.tell(new ClusterNode.AdoptRun(RUN, 2, another.getRef()));

        assertThat(another.expectMessageClass(ClusterNode.ShareKept.class).namedDrivers())
                .containsExactly("driver-1", "another");
    }

    @Test
    void theDeathOfADriverIsSaidAgainUntilAnotherIsWanted() {
        node.tell(open(1));
        seed.expectMessage(new ClusterNode.RunOpened(HERE, 1, "driver-1"));

        onDeath.get().accept("kill -9");

        var died = new ClusterNode.DriverDied(HERE, "driver-1", "kill -9");
        seed.expectMessage(died);
        seed.expectMessage(Duration.ofSeconds(20), died);
        node.tell(new ClusterNode.StartDriver(RUN, 2, seed.getRef()));
        seed.expectMessage(new ClusterNode.DriverStarted(HERE, 2, "driver-2"));
    }
}
