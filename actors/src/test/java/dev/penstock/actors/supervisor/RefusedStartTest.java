package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.Deaf;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.rank.EpochLinks;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankLocation;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.rank.RankRunner;
import dev.penstock.actors.rank.RankStatus;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A rank whose links find no room gives everything back and says what was missing. */
@Timeout(60)
class RefusedStartTest {
    private static final int TERM = 1 << 16;
    private static final ChainStage.Settings SETTINGS =
            new ChainStage.Settings(1, 2, 1, false, 0.1);

    private final EmbeddedDriver driver =
            EmbeddedDriver.start(DriverSettings.inSharedMemory("refused", TERM, 4));
    private final DataPlane plane =
            AeronDataPlane.start(AeronSettings.ipc(driver.directory(), 42).withTermLength(TERM));
    private final List<DeviceScope> memories = new ArrayList<>();

    @AfterEach
    void close() {
        plane.close();
        driver.close();
    }

    private RankRunner start(long memoryLimit, ChainStages stages) {
        RunPlan chain = new ChainPipeline("gpipe", SETTINGS).plan();
        var plan =
                new RunPlan(
                        "refused",
                        "hash",
                        chain.training(),
                        chain.evaluation(),
                        new RankGrid(1, 1, 1, 2),
                        chain.inFlight(),
                        chain.steps(),
                        Timeouts.DEFAULT,
                        false,
                        false,
                        CollectiveForm.NEVER);
        var resources =
                RankResources.of(
                        plan,
                        _ -> {
                            Device device = Devices.open(settings(memoryLimit));
                            memories.add(device.memory());
                            return device;
                        },
                        stages,
                        plane,
                        new ChainPipeline("gpipe", SETTINGS));
        var birth =
                new RankAssignment(
                        0,
                        new StateSource.Fresh(),
                        new EpochLinks(
                                0,
                                List.of(apart(0), apart(1)), // blocks of sums between processes
                                List.of(),
                                "",
                                PlanRevision.NONE));
        return new RankRunner(birth, resources, new RankStatus(), _ -> {}, _ -> new Deaf());
    }

    private static DeviceSettings settings(long memoryLimit) {
        return new DeviceSettings(
                DeviceSettings.Kind.REFERENCE,
                1,
                DeviceSettings.Gemm.JAVA,
                0,
                0,
                memoryLimit,
                true,
                false);
    }

    private static ChainStage chain(int stage, Device device) {
        return new ChainStage(SETTINGS, stage, device);
    }

    @Test
    void noRoomForBlocksOfCollectives() {
        assertThatThrownBy(() -> start(2 << 20, (stage, _, device) -> chain(stage, device)))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("REPLICAS block 1 of rank 1")
                .hasNoSuppressedExceptions();

        assertNothingIsLeft();
    }

    @Test
    void aStageThatCannotConnectLeavesTheDataPlaneFree() {
        for (int attempt = 0; attempt < 2; attempt++) {
            assertThatThrownBy(
                            () ->
                                    start(
                                            Long.MAX_VALUE,
                                            (stage, _, device) ->
                                                    new Unconnected(chain(stage, device))))
                    .hasMessage("no room to connect");

            assertNothingIsLeft();
        }
    }

    private void assertNothingIsLeft() {
        DeviceScope memory = memories.getLast();
        assertThat(memory.children()).isEmpty();
        assertThat(memory.liveBytes()).isZero();
    }

    private static final class Unconnected extends ForwardingStage {
        Unconnected(ChainStage stage) {
            super(stage);
        }

        @Override
        public void connect(StageGroups groups) {
            throw new IllegalStateException("no room to connect");
        }
    }

    private static RankLocation apart(int rank) {
        return new RankLocation(rank, rank, MirrorLayout.NOBODY, Optional.empty());
    }
}
