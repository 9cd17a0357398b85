package dev.penstock.runtime.links;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DataPlaneSection.Codec;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class LinkCostsTest {
    private static final Channel FORWARD = new Channel(0, 1);
    private static final WorkUnit UNIT = new WorkUnit(1, 0, 0);

    /** A micro-batch has 2 x 128 tokens of 256 floats: 262,144 bytes. */
    private static final String RUN =
            """
            model { context = 128, width = 256, layers = 4, heads = 4 }
            data { source = text.txt, tokenizer = bytes }
            batch { sequences = 16, micro-batches = 8 }
            pipeline.stages = 2
            """;

    @TempDir Path folder;

    @BeforeEach
    void writeRun() throws IOException {
        Files.writeString(folder.resolve("text.txt"), "some text");
        Files.writeString(folder.resolve("run.conf"), RUN);
    }

    private LoadedConfig run(String... settings) {
        return ConfigLoader.loadWithOrigins(folder.resolve("run.conf"), List.of(settings));
    }

    private static CostModel costs(LoadedConfig run) {
        Schedule order = ConfiguredSchedule.of(run).training(run);
        return LinkCosts.of(CostModel.of(1_000, 2_000, 0), order, run.config());
    }

    @Test
    void aTensorKeepsAnEmulatedLinkBusyByItsBytes() {
        CostModel plain =
                costs(
                        run(
                                "data-plane.emulate.bandwidth=100 Mbit/s",
                                "data-plane.emulate.latency=20 ms"));
        CostModel coded =
                costs(run("data-plane.emulate.bandwidth=100 Mbit/s", "data-plane.codec=int8"));

        assertThat(plain.occupancyNanos(FORWARD, UNIT)).isEqualTo(262_144L * 80);
        assertThat(plain.latencyNanos(FORWARD)).isEqualTo(20_000_000);
        assertThat(coded.occupancyNanos(FORWARD, UNIT)).isEqualTo(256 * 260L * 80);
        assertThat(coded.latencyNanos(FORWARD)).isZero();
    }

    @Test
    void codingTakesTimeOfBothRanks() {
        CostModel coded = costs(run("data-plane.codec=int8"));

        // 262,144 bytes at 10 and 22 GB/s
        assertThat(coded.nanos(0, 0, new Op.SendActivation(UNIT.onStage(0)))).isEqualTo(26_214);
        assertThat(coded.nanos(1, 0, new Op.ReceiveActivation(UNIT))).isEqualTo(11_916);
        assertThat(coded.nanos(1, 0, new Op.SendGradient(UNIT))).isEqualTo(26_214);
        assertThat(coded.nanos(1, 0, new Op.Forward(UNIT))).isEqualTo(1_000);
    }

    @Test
    void ofReplicasTheSlowestLinkCountsAndNearOnesTakeNoTime() {
        String[] near = {
            "parallel.data=2",
            "data-plane.emulate.bandwidth=100 Mbit/s",
            "data-plane.emulate.between=[[0, 1, 2, 3]]"
        };
        String[] far = {near[0], near[1], "data-plane.emulate.between=[[0, 2], [1, 3]]"};

        assertThat(costs(run(near)).occupancyNanos(FORWARD, UNIT)).isZero();
        assertThat(costs(run(far)).occupancyNanos(FORWARD, UNIT)).isEqualTo(262_144L * 80);
    }

    @Test
    void lostFramesCountOnAverage() {
        CostModel lossy =
                costs(
                        run(
                                "data-plane.emulate.bandwidth=100 Mbit/s",
                                "data-plane.emulate.latency=10 ms",
                                "data-plane.emulate.loss=10 %"));

        assertThat(lossy.occupancyNanos(FORWARD, UNIT)).isEqualTo(Math.round(262_144L * 80 / 0.9));
        // 187 frames: some lost as good as surely, some again with 0.85, some a third time with
        // 0.17
        assertThat(lossy.latencyNanos(FORWARD)).isBetween(50_000_000L, 51_500_000L);
    }

    @Test
    void aStepThatItsLinkBoundsTakesWhatTheLinkNeeds() {
        LoadedConfig run = run("data-plane.emulate.bandwidth=10 Mbit/s");
        Schedule order = ConfiguredSchedule.of(run).training(run);

        long step = ScheduleSimulator.simulate(order, costs(run)).makespanNanos();

        // 8 activations one after another, the last gradient back, and that of the token table
        long needed = 9L * 262_144 * 800 + 256 * 256 * 4 * 800;
        assertThat(step).isBetween(needed, needed + 100_000);
    }

    @ParameterizedTest
    @CsvSource({"real, NONE", "10 Gbit/s, NONE", "700 Mbit/s, FP16", "10 Mbit/s, INT8"})
    void theCodecOfARunIsChosenByTheBandwidth(String bandwidth, Codec codec) {
        LoadedConfig run =
                run("data-plane.codec=auto", "data-plane.emulate.bandwidth=" + bandwidth);

        assertThat(RunParts.decided(run).config().dataPlane().codec()).contains(codec);
        LoadedConfig given = run("data-plane.codec=int4", "data-plane.emulate.latency=1 s");
        assertThat(RunParts.decided(given)).isSameAs(given);
    }
}
