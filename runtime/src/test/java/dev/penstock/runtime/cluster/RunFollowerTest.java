package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.Props;
import akka.actor.typed.javadsl.Behaviors;
import dev.penstock.actors.cluster.ClusterRuns;
import java.time.Duration;
import java.util.List;
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
                    RunFollower.of("lost", List.of(seed), events, Duration.ofSeconds(3)),
                    "follower",
                    Props.empty());

            assertThat(events.poll(30, TimeUnit.SECONDS))
                    .isEqualTo(new FollowEvent.GivenUp("no seed has answered for 3 s"));
        } finally {
            seed.terminate();
        }
    }
}
