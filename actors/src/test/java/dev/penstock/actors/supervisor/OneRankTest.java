package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.TestProbe;
import akka.actor.typed.ActorRef;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.Deaf;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankLocation;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.rank.RankRunner;
import dev.penstock.actors.rank.RankStatus;
import dev.penstock.actors.rank.StageActor;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A rank alone, with orders that it gets only when something went wrong. */
@Timeout(60)
class OneRankTest {
    private static final int TERM = 1 << 16;

    private final EmbeddedDriver driver =
            EmbeddedDriver.start(DriverSettings.inSharedMemory("one", TERM, 4));
    private final DataPlane plane =
            AeronDataPlane.start(AeronSettings.ipc(driver.directory(), 42).withTermLength(TERM));
    private final ChainPipeline pipeline =
            new ChainPipeline("gpipe", new ChainStage.Settings(1, 2, 1, false, 0.1));
    private final RunPlan plan = pipeline.plan();
    private final RankResources resources =
            RankResources.of(
                    plan,
                    _ ->
                            Devices.open(
                                    DeviceSettings.DEFAULTS.withKind(
                                            DeviceSettings.Kind.REFERENCE)),
                    pipeline.programs,
                    plane,
                    pipeline);
    private final List<RankEvent> events = new ArrayList<>();
    private final Consumer<RankEvent> supervisor = events::add;

    @AfterEach
    void close() {
        plane.close();
        driver.close();
    }

    /** As if it had just run the step that it went back to, since its commit may be repeated. */
    @Test
    void whatGoesBackDuringAnEvaluationHasATimeForEveryOpOfAStep() {
        var birth = new RankAssignment(0, new StateSource.Fresh(), links(0));
        try (var rank =
                new RankRunner(birth, resources, new RankStatus(), supervisor, _ -> new Deaf())) {
            order(rank, new RankCommand.BeginPass(0, 1, StepKind.EVALUATE, 0));
            assertThat(events.getLast()).isInstanceOf(RankEvent.PassDone.class);

            order(rank, new RankCommand.Prepare(1));
            order(rank, new RankCommand.Resume(new StateSource.Fresh(), links(1)));
            order(rank, new RankCommand.Commit(1, 0, 1));

            assertThat(events.getLast())
                    .isInstanceOfSatisfying(
                            RankEvent.StepDone.class,
                            done ->
                                    assertThat(done.timings().opStartNanos())
                                            .hasSameSizeAs(plan.training().program(0).ops()));
        }
    }

    @Test
    void itSaysWhichLocationsItHoldsWhenItPrepares() {
        var birth = new RankAssignment(0, new StateSource.Fresh(), links(0));
        try (var rank =
                new RankRunner(birth, resources, new RankStatus(), supervisor, _ -> new Deaf())) {
            order(rank, new RankCommand.Prepare(1));
            assertThat(lastPrepared().locations())
                    .isEqualTo(LocationDigests.of(links(0).changed()));

            order(rank, new RankCommand.Resume(new StateSource.Fresh(), nothingNew()));
            order(rank, new RankCommand.Prepare(1));
            assertThat(lastPrepared().locations())
                    .isEqualTo(LocationDigests.of(links(0).changed()));
        }
    }

    private RankEvent.Prepared lastPrepared() {
        return (RankEvent.Prepared) events.getLast();
    }

    private static EpochLinks nothingNew() {
        return new EpochLinks(1, List.of(), List.of(), "", PlanRevision.NONE);
    }

    /** Else both would hold memory of the device until the next recovery. */
    @Test
    void aNodeThatHostsARankAnewEndsTheOneBefore() {
        ActorTestKit kit = ActorTestKit.create();
        try {
            TestProbe<RankEvent> ranks = kit.createTestProbe();
            TestProbe<NodeActor.HostAnswer> answers = kit.createTestProbe();
            TestProbe<NodeActor.Introduction> introductions = kit.createTestProbe();
            ActorRef<NodeActor.Command> node =
                    kit.spawn(NodeActor.create(TestNodes.ofAny("one", 1), resources));

            for (int epoch : new int[] {1, 3}) {
                node.tell(
                        new NodeActor.HostRank(
                                new RankAssignment(0, new StateSource.Fresh(), links(epoch)),
                                plan.hash(),
                                ranks.ref(),
                                answers.ref()));
                assertThat(answers.receiveMessage()).isInstanceOf(NodeActor.Hosting.class);
            }

            ranks.awaitAssert(
                    Duration.ofSeconds(30),
                    () -> {
                        node.tell(new NodeActor.Introduce(3, introductions.ref()));
                        assertThat(introductions.receiveMessage().ranks())
                                .extracting(NodeActor.Hosting::epoch)
                                .containsExactly(3);
                        return true;
                    });
        } finally {
            kit.shutdownTestKit();
        }
    }

    /** Only who supervises the run may end a process whose rank still lives. */
    @Test
    void aFenceOfAnEpochThatIsOverEndsNothing() throws InterruptedException {
        var reasons = new LinkedBlockingQueue<String>();
        ActorTestKit kit = ActorTestKit.create();
        try {
            TestProbe<RankEvent> former = kit.createTestProbe();
            TestProbe<RankEvent> present = kit.createTestProbe();
            ActorRef<StageActor.Command> stage =
                    kit.spawn(
                            StageActor.create(
                                    new RankAssignment(0, new StateSource.Fresh(), links(5)),
                                    resources.whenFenced(reasons::add),
                                    present.ref()));

            stage.tell(new StageActor.Order(new RankCommand.Fence(4, "before"), former.ref()));
            stage.tell(new StageActor.Order(new RankCommand.Fence(5, "now"), present.ref()));

            assertThat(reasons.poll(30, TimeUnit.SECONDS)).isEqualTo("now");
        } finally {
            kit.shutdownTestKit();
        }
    }

    private void order(RankRunner rank, RankCommand order) {
        RankRunner.Next next = rank.onOrder(order, supervisor);
        while (next == RankRunner.Next.RUN_OP) {
            next = rank.runOp();
        }
    }

    private static EpochLinks links(int epoch) {
        return new EpochLinks(
                epoch,
                List.of(new RankLocation(0, 0, MirrorLayout.NOBODY, Optional.empty())),
                List.of(),
                "",
                PlanRevision.NONE);
    }
}
