package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.testkit.typed.FishingOutcome;
import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.FishingOutcomes;
import akka.actor.testkit.typed.javadsl.TestProbe;
import akka.actor.typed.ActorRef;
import akka.actor.typed.receptionist.Receptionist;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.StageActor;
import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.ProcessVitals;
import dev.penstock.actors.spi.RunOutcome;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A process says who it is, dies, and is heard only after its death was. */
class LastWordsTest {
    private static final long DEAD = 98;
    private static final long ALIVE = 99;

    private static final String NAME = "stage process 0";

    private final ActorTestKit kit = ActorTestKit.create();
    private final TestProbe<NodeActor.Command> dead = kit.createTestProbe();
    private final TestProbe<NodeActor.Command> living = kit.createTestProbe();
    private final CompletableFuture<RunOutcome> outcome = new CompletableFuture<>();
    private ActorRef<NodeActor.Introduction> introductions = kit.system().ignoreRef();

    @AfterEach
    void end() {
        kit.shutdownTestKit();
    }

    @Test
    void noRankGoesToAProcessThatIsKnownToBeDead() {
        supervise();

        introductions.tell(introduction(DEAD, dead));
        introductions.tell(introduction(ALIVE, living));

        living.expectMessageClass(NodeActor.HostRank.class);
    }

    /** As in a cluster, where a node may be taken for dead that has only been away. */
    @Test
    void aNodeThatWasSaidToBeDeadIsHeardAgainWhenItIsSaidToBeBack() {
        ActorRef<PipelineSupervisor.Command> supervisor = supervise();
        String process = TestNodes.of(NAME, ALIVE, 0).process();
        supervisor.tell(new PipelineSupervisor.NodeDied(process, false, "it left the cluster"));

        introductions.tell(introduction(ALIVE, living));
        living.expectNoMessage();
        supervisor.tell(new PipelineSupervisor.NodeBack(process));
        introductions.tell(introduction(ALIVE, living));

        living.expectMessageClass(NodeActor.HostRank.class);
    }

    /** It stood still and was taken for dead: what it decides since then is told to nobody. */
    @Test
    void aSupervisorWhoseJournalIsAnothersTellsNobodyAnythingAndEnds(@TempDir Path folder) {
        Path file = folder.resolve(JournalFile.NAME);
        try (JournalFile own = JournalFile.open(file)) {
            supervise(own);
            try (JournalFile _ = JournalFile.open(file)) {
                introductions.tell(introduction(ALIVE, living));

                assertThat(outcome)
                        .succeedsWithin(Duration.ofSeconds(10))
                        .isInstanceOfSatisfying(
                                RunOutcome.Failed.class,
                                failed ->
                                        assertThat(failed.reason())
                                                .contains("another supervisor has taken the run"));
                living.expectNoMessage();
            }
        }
    }

    /** Two supervisors that ask in the same epoch would both be followed. */
    @Test
    void aHigherEpochIsInTheJournalBeforeANodeHearsOfIt(@TempDir Path folder) {
        Path file = folder.resolve(JournalFile.NAME);
        try (JournalFile own = JournalFile.open(file)) {
            supervise(own);
            try (JournalFile _ = JournalFile.open(file)) {
                introductions.tell(introduction(ALIVE, living, 7));

                assertThat(outcome).succeedsWithin(Duration.ofSeconds(10));
                living.expectNoMessage();
            }
        }
    }

    @Test
    void aNodeThatIntroducesItselfIsAskedUntilItFollows() {
        supervise();

        introductions.tell(introduction(ALIVE, living, 0));
        living.expectMessageClass(NodeActor.Introduce.class);
        introductions.tell(introduction(ALIVE, living, 0));

        assertThat(living.fishForMessage(Duration.ofSeconds(10), LastWordsTest::untilAsked))
                .isNotEmpty();
    }

    /** A broken connection took its node's word with it, and a run of one rank has no majority. */
    @Test
    void whereASilentRankLivedIsAskedUntilItsNodeSaysThatItEnded() {
        supervise();
        introductions.tell(introduction(ALIVE, living));
        NodeActor.HostRank first = living.expectMessageClass(NodeActor.HostRank.class);
        first.replyTo()
                .tell(new NodeActor.Hosting(0, 1, kit.<StageActor.Command>createTestProbe().ref()));
        first.events().tell(new RankEvent.Opened(0, 1, "device", "kernels"));

        living.expectMessageClass(NodeActor.Introduce.class, Duration.ofSeconds(20));
        introductions.tell(introduction(ALIVE, living, 2));

        assertThat(living.fishForMessage(Duration.ofSeconds(20), LastWordsTest::untilHosting))
                .isNotEmpty();
    }

    private static FishingOutcome untilHosting(NodeActor.Command command) {
        return command instanceof NodeActor.HostRank
                ? FishingOutcomes.complete()
                : FishingOutcomes.continueAndIgnore();
    }

    private static FishingOutcome untilAsked(NodeActor.Command command) {
        return command instanceof NodeActor.Introduce(int epoch, _) && epoch == 1
                ? FishingOutcomes.complete()
                : FishingOutcomes.continueAndIgnore();
    }

    private ActorRef<PipelineSupervisor.Command> supervise() {
        return supervise(RunJournal.NONE);
    }

    private ActorRef<PipelineSupervisor.Command> supervise(RunJournal journal) {
        var chain = new ChainPipeline("gpipe", new ChainStage.Settings(1, 2, 1, false, 0.1));
        var services =
                new SupervisorServices(
                        chain,
                        RecoveryPolicy.DEFAULT,
                        journal,
                        new Processes(),
                        ProcessVitals.NONE,
                        PlanReaction.NONE);
        ActorRef<PipelineSupervisor.Command> supervisor =
                kit.spawn(PipelineSupervisor.create(chain.plan(), chain, services, outcome));
        kit.system()
                .receptionist()
                .tell(Receptionist.register(NodeActor.key(chain.plan().runId()), dead.getRef()));
        introductions = dead.expectMessageClass(NodeActor.Introduce.class).replyTo();
        return supervisor;
    }

    private static NodeActor.Introduction introduction(
            long pid, TestProbe<NodeActor.Command> node) {
        return introduction(pid, node, 1);
    }

    private static NodeActor.Introduction introduction(
            long pid, TestProbe<NodeActor.Command> node, int epoch) {
        return new NodeActor.Introduction(
                TestNodes.of(NAME, pid, 0), node.getRef(), epoch, List.of());
    }

    private static final class Processes implements ProcessSupply {
        @Override
        public void start(Optional<Integer> rank) {}

        @Override
        public boolean mayLive(long pid) {
            return pid != DEAD;
        }

        @Override
        public void restartLink(Set<String> gone) {}
    }
}
