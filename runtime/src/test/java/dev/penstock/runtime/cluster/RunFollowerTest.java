package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.Props;
import akka.actor.typed.javadsl.Behaviors;
import dev.penstock.actors.cluster.ClusterRuns;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Following a run of a cluster that may be gone. */
class RunFollowerTest {
    @Test
    void whoeverFollowsASilentClusterGivesUp() throws InterruptedException {
        ActorSystem<ClusterRuns.Command> seed = ActorSystem.create(Behaviors.ignore(), "silent");
        try {
            var events = new LinkedBlockingQueue<FollowEvent>();
            seed.systemActorOf(
                    RunFollower.of(
                            "lost",
                            List.of(seed),
                            events,
                            Duration.ofSeconds(3),
                            Duration.ofSeconds(3)),
                    "follower",
                    Props.empty());

            assertThat(events.poll(30, TimeUnit.SECONDS))
                    .isEqualTo(new FollowEvent.GivenUp("no seed has answered for 3 s"));
        } finally {
            seed.terminate();
        }
    }

    /** A seed that answers is no silent one, whatever it says. */
    @Test
    void whoeverFollowsARunThatNoSeedKeepsIsToldSoAndGivesUp() throws InterruptedException {
        assertThat(lastOf(ClusterRuns.WhyUnkept.HELD))
                .isEqualTo(new FollowEvent.NotKept("process 7 has it"));
    }

    @Test
    void whoeverFollowsARunThatNoSeedCanOpenIsToldSoAtOnce() throws InterruptedException {
        assertThat(lastOf(ClusterRuns.WhyUnkept.BROKEN))
                .isEqualTo(new FollowEvent.NotKept("process 7 has it"));
    }

    private static FollowEvent lastOf(ClusterRuns.WhyUnkept why) throws InterruptedException {
        Behavior<ClusterRuns.Command> keeper =
                Behaviors.receiveMessage(
                        command -> {
                            if (command instanceof ClusterRuns.Follow follow) {
                                follow.replyTo()
                                        .tell(
                                                new ClusterRuns.Unkept(
                                                        follow.run(), why, "process 7 has it"));
                            }
                            return Behaviors.same();
                        });
        ActorSystem<ClusterRuns.Command> seed = ActorSystem.create(keeper, "keeper");
        try {
            var events = new LinkedBlockingQueue<FollowEvent>();
            seed.systemActorOf(
                    RunFollower.of(
                            "lost",
                            List.of(seed),
                            events,
                            Duration.ofMinutes(10),
                            Duration.ofSeconds(2)),
                    "follower",
                    Props.empty());
            FollowEvent last = events.poll(30, TimeUnit.SECONDS);
            while (last instanceof FollowEvent.Contact) {
                last = events.poll(30, TimeUnit.SECONDS);
            }
            return Objects.requireNonNull(last);
        } finally {
            seed.terminate();
        }
    }
}
