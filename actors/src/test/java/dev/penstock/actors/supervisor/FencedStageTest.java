package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.TestProbe;
import akka.actor.typed.ActorRef;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.rank.StageActor;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Only who supervises the run may end a process whose rank still lives. */
@Timeout(60)
class FencedStageTest {
    private static final int TERM = 1 << 16;
    private static final int EPOCH = 5;

    private final ActorTestKit kit = ActorTestKit.create();
    private final EmbeddedDriver driver =
            EmbeddedDriver.start(DriverSettings.inSharedMemory("fenced", TERM, 4));
    private final DataPlane plane =
            AeronDataPlane.start(AeronSettings.ipc(driver.directory(), 42).withTermLength(TERM));

    @AfterEach
    void close() {
        kit.shutdownTestKit();
        plane.close();
        driver.close();
    }

    @Test
    void aFenceOfAnEpochThatIsOverEndsNothing() throws InterruptedException {
        var pipeline = new ChainPipeline("gpipe", new ChainStage.Settings(1, 2, 1, false, 0.1));
        RunPlan plan = pipeline.plan();
        var reasons = new LinkedBlockingQueue<String>();
        TestProbe<RankEvent> former = kit.createTestProbe();
        TestProbe<RankEvent> present = kit.createTestProbe();
        var resources =
                RankResources.of(
                                plan,
                                _ ->
                                        Devices.open(
                                                DeviceSettings.DEFAULTS.withKind(
                                                        DeviceSettings.Kind.REFERENCE)),
                                pipeline.programs,
                                plane,
                                pipeline)
                        .whenFenced(reasons::add);
        var links = new EpochLinks(EPOCH, MirrorLayout.none(1), List.of(0), "", List.of());
        ActorRef<StageActor.Command> stage =
                kit.spawn(
                        StageActor.create(
                                new RankAssignment(0, new StateSource.Fresh(), links),
                                resources,
                                present.ref()));

        stage.tell(
                new StageActor.Order(new RankCommand.Fence(EPOCH - 1, "long ago"), former.ref()));
        stage.tell(new StageActor.Order(new RankCommand.Fence(EPOCH, "now"), present.ref()));

        assertThat(reasons.poll(30, TimeUnit.SECONDS)).isEqualTo("now");
    }
}
