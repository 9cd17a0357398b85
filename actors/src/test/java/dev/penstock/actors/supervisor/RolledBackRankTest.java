package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameListener;
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
import dev.penstock.actors.rank.RankRunner;
import dev.penstock.actors.rank.RankStatus;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A rank that goes back answers a repeated commit as if it had just run that step. */
@Timeout(60)
class RolledBackRankTest {
    private static final int TERM = 1 << 16;

    private final EmbeddedDriver driver =
            EmbeddedDriver.start(DriverSettings.inSharedMemory("back", TERM, 4));
    private final DataPlane plane =
            AeronDataPlane.start(AeronSettings.ipc(driver.directory(), 42).withTermLength(TERM));
    private final List<RankEvent> events = new ArrayList<>();
    private final Consumer<RankEvent> supervisor = events::add;

    @AfterEach
    void close() {
        plane.close();
        driver.close();
    }

    @Test
    void whatGoesBackDuringAnEvaluationHasATimeForEveryOpOfAStep() {
        var pipeline = new ChainPipeline("gpipe", new ChainStage.Settings(1, 2, 1, false, 0.1));
        RunPlan plan = pipeline.plan();
        var resources =
                RankResources.of(
                        plan,
                        _ ->
                                Devices.open(
                                        DeviceSettings.DEFAULTS.withKind(
                                                DeviceSettings.Kind.REFERENCE)),
                        pipeline.programs,
                        plane,
                        pipeline);
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

    private void order(RankRunner rank, RankCommand order) {
        RankRunner.Next next = rank.onOrder(order, supervisor);
        while (next == RankRunner.Next.RUN_OP) {
            next = rank.runOp();
        }
    }

    private static EpochLinks links(int epoch) {
        return new EpochLinks(epoch, MirrorLayout.none(1), List.of(0), "", List.of());
    }

    private static final class Deaf implements FrameListener {
        @Override
        public void onFrame(FrameKey key) {}

        @Override
        public void onCredit(ChannelKey channel) {}

        @Override
        public void onFailure(DataPlaneException failure) {}
    }
}
