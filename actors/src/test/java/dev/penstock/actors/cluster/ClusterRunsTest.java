package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.TestProbe;
import akka.actor.typed.ActorRef;
import com.typesafe.config.ConfigFactory;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The keeper of a cluster's runs, on a seed without nodes. */
class ClusterRunsTest {
    private static final String RUN = "run-1";

    private final ActorTestKit kit =
            ActorTestKit.create(
                    ConfigFactory.parseString(
                                    "akka.actor.provider = cluster, akka.remote.artery.canonical {"
                                            + " hostname = 127.0.0.1, port = 0 },"
                                            + " akka.cluster.jmx.enabled = off")
                            .withFallback(ConfigFactory.load()));
    private final BlockingQueue<Boolean> looksForAll = new LinkedBlockingQueue<>();

    @AfterEach
    void shutDown() {
        kit.shutdownTestKit();
    }

    /** A file server may keep a dead host's lock for minutes. */
    @Test
    void aRunWhoseLockIsHeldIsLookedForAgainUntilItIsFree() throws Exception {
        ActorRef<ClusterRuns.Command> keeper = kit.spawn(ClusterRuns.create(maker(), "host"));
        assertThat(looksForAll.poll(10, TimeUnit.SECONDS)).isTrue();

        assertThat(looksForAll.poll(20, TimeUnit.SECONDS)).as("only for the locked one").isFalse();

        TestProbe<ClusterRuns.RunList> list = kit.createTestProbe();
        keeper.tell(new ClusterRuns.ListRuns(list.getRef()));
        assertThat(list.receiveMessage(Duration.ofSeconds(10)).runs())
                .extracting(RunStanding::run)
                .containsExactly(RUN);
        assertThat(looksForAll.poll(5, TimeUnit.SECONDS)).as("nothing is locked").isNull();
    }

    /**
     * A seed that is taken for dead while it opens a run begins anew in its process, which would
     * hold the run's lock for ever.
     */
    @Test
    void aRunThatIsOpenedForAKeeperThatHasStoppedIsClosed() throws Exception {
        var opening = new CountDownLatch(1);
        var stopped = new CountDownLatch(1);
        var closed = new CountDownLatch(1);
        ClusterRun run =
                new ImaginedRun(RUN, 2, Map.of()) {
                    @Override
                    public void close() {
                        closed.countDown();
                    }
                };
        ActorRef<ClusterRuns.Command> keeper =
                kit.spawn(
                        ClusterRuns.create(
                                new OneRun(
                                        () -> {
                                            opening.countDown();
                                            awaitUninterruptibly(stopped);
                                            return run;
                                        }),
                                "host"));
        assertThat(opening.await(10, TimeUnit.SECONDS)).isTrue();

        kit.stop(keeper);
        stopped.countDown();

        assertThat(closed.await(10, TimeUnit.SECONDS)).isTrue();
    }

    /** Silence would look like a dead cluster, though the keeper is there. */
    @Test
    void whoeverAsksForARunThatIsNotKeptYetIsToldWhy() throws Exception {
        var opening = new CountDownLatch(1);
        var go = new CountDownLatch(1);
        ActorRef<ClusterRuns.Command> keeper =
                kit.spawn(
                        ClusterRuns.create(
                                new OneRun(
                                        () -> {
                                            opening.countDown();
                                            awaitUninterruptibly(go);
                                            return new ImaginedRun(RUN, 2, Map.of());
                                        }),
                                "host"));
        assertThat(opening.await(10, TimeUnit.SECONDS)).isTrue();

        assertThat(unkept(follow(keeper, RUN)).why()).isEqualTo(ClusterRuns.WhyUnkept.OPENS);
        assertThat(unkept(follow(keeper, "run-2")).why()).isEqualTo(ClusterRuns.WhyUnkept.LOOKS);
        TestProbe<ClusterRuns.StopAnswer> stop = kit.createTestProbe();
        keeper.tell(new ClusterRuns.StopRun(RUN, stop.getRef()));
        assertThat(stop.receiveMessage(Duration.ofSeconds(10)))
                .isInstanceOf(ClusterRuns.Unkept.class);
        ClusterRuns.RunList list = list(keeper);
        assertThat(list.looking()).isTrue();
        assertThat(list.unkept()).extracting(ClusterRuns.Unkept::run).containsExactly(RUN);

        go.countDown();
        kit.createTestProbe()
                .awaitAssert(
                        Duration.ofSeconds(10),
                        () -> {
                            assertThat(list(keeper).looking()).isFalse();
                            return keeper;
                        });
        assertThat(list(keeper).runs()).extracting(RunStanding::run).containsExactly(RUN);
        assertThat(follow(keeper, "run-2")).isInstanceOf(ClusterRuns.NotThere.class);
        assertThat(list(keeper).unkept()).isEmpty();
    }

    private ClusterRuns.FollowAnswer follow(ActorRef<ClusterRuns.Command> keeper, String run) {
        TestProbe<ClusterRuns.FollowAnswer> answer = kit.createTestProbe();
        TestProbe<RunNews> news = kit.createTestProbe();
        keeper.tell(new ClusterRuns.Follow(run, news.getRef(), answer.getRef()));
        return answer.receiveMessage(Duration.ofSeconds(10));
    }

    private static ClusterRuns.Unkept unkept(ClusterRuns.FollowAnswer answer) {
        assertThat(answer).isInstanceOf(ClusterRuns.Unkept.class);
        return (ClusterRuns.Unkept) answer;
    }

    private ClusterRuns.RunList list(ActorRef<ClusterRuns.Command> keeper) {
        TestProbe<ClusterRuns.RunList> list = kit.createTestProbe();
        keeper.tell(new ClusterRuns.ListRuns(list.getRef()));
        return list.receiveMessage(Duration.ofSeconds(10));
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Finds one. */
    private record OneRun(Supplier<ClusterRun> run) implements RunMaker {
        @Override
        public ClusterRun make(String submission) {
            throw new UnsupportedOperationException("nobody submits anything");
        }

        @Override
        public Map<String, Set<String>> unfinished(Predicate<String> names, RunMaker.Finder found) {
            found.opens(RUN);
            found.opened(run.get());
            return Map.of();
        }
    }

    private RunMaker maker() {
        return new RunMaker() {
            private boolean locked = true;

            @Override
            public ClusterRun make(String submission) {
                throw new UnsupportedOperationException("nobody submits anything");
            }

            @Override
            public Map<String, Set<String>> unfinished(
                    Predicate<String> names, RunMaker.Finder found) {
                if (locked) {
                    locked = false;
                    looksForAll.add(names.test("other-1"));
                    return Map.of(RUN, Set.of());
                }
                found.opened(new ImaginedRun(RUN, 2, Map.of()));
                looksForAll.add(names.test("other-1"));
                return Map.of();
            }
        };
    }
}
