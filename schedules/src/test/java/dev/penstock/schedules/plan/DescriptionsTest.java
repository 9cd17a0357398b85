package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.penstock.schedules.plan.slices.SliceSample;
import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.TrainingBytes;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/**
 * Descriptions of models, hardware and searches: the smallest allowed values, and anything below.
 */
class DescriptionsTest {
    private static void assertLeast(ThrowingCallable least, ThrowingCallable... below) {
        assertThatCode(least).doesNotThrowAnyException();
        for (ThrowingCallable refused : below) {
            assertThatIllegalArgumentException().isThrownBy(refused);
        }
    }

    @Test
    void aModelHasOneOfEverything() {
        assertLeast(
                () -> new ModelShape(1, 1, 1, 1, 1, true),
                () -> new ModelShape(0, 1, 1, 1, 1, true),
                () -> new ModelShape(1, 0, 1, 1, 1, true),
                () -> new ModelShape(1, 1, 0, 1, 1, true),
                () -> new ModelShape(1, 1, 1, 0, 1, true),
                () -> new ModelShape(1, 1, 1, 1, 0, true));
        assertLeast(
                () -> new ModelShape(1, 6, 3, 1, 1, true),
                () -> new ModelShape(1, 6, 4, 1, 1, true));
    }

    @Test
    void hardwareMustBeAbleToDoSomething() {
        assertLeast(
                () -> new DeviceSpec(1, 1e-9, 1, 1e-9),
                () -> new DeviceSpec(0, 1e-9, 1, 1e-9),
                () -> new DeviceSpec(1, 0, 1, 1e-9),
                () -> new DeviceSpec(1, Double.NaN, 1, 1e-9),
                () -> new DeviceSpec(1, 1e-9, 0, 1e-9),
                () -> new DeviceSpec(1, 1e-9, 1.01, 1e-9),
                () -> new DeviceSpec(1, 1e-9, 1, 0));
        assertLeast(() -> new Link(0, 1e-9), () -> new Link(-1, 1e-9), () -> new Link(0, 0));
        assertLeast(
                () -> new NodeGroup("n", 1, 1, CountingHardware.DEVICE, CountingHardware.INSIDE),
                () -> new NodeGroup("n", 0, 1, CountingHardware.DEVICE, CountingHardware.INSIDE),
                () -> new NodeGroup("n", 1, 0, CountingHardware.DEVICE, CountingHardware.INSIDE));
        assertLeast(
                () -> CountingHardware.cluster(1, 1),
                () -> new Hardware("empty", List.of(), CountingHardware.NETWORK));
    }

    @Test
    void whatIsPlannedHasOneOfEverything() {
        assertLeast(
                () -> new Layout(1, 1, 1),
                () -> new Layout(0, 1, 1),
                () -> new Layout(1, 0, 1),
                () -> new Layout(1, 1, 0));
        assertLeast(
                () -> CountingHardware.request(CountingHardware.cluster(1, 1), 1),
                () -> CountingHardware.request(CountingHardware.cluster(1, 1), 0));
        assertLeast(
                () -> new SearchLimits(1, 1, 1),
                () -> new SearchLimits(0, 1, 1),
                () -> new SearchLimits(1, 0, 1),
                () -> new SearchLimits(1, 1, 0));
        assertLeast(
                () -> new Ranking(0, 1),
                () -> new Ranking(-0.01, 1),
                () -> new Ranking(1, 1),
                () -> new Ranking(0, 0));
        assertLeast(
                () -> new TrainingBytes(1, 1, 0, 1),
                () -> new TrainingBytes(0, 1, 0, 1),
                () -> new TrainingBytes(1, 0, 0, 1),
                () -> new TrainingBytes(1, 1, -1, 1),
                () -> new TrainingBytes(1, 1, 0, 0));
        assertLeast(
                () -> new SliceSample(1, 0, 0),
                () -> new SliceSample(0, 0, 0),
                () -> new SliceSample(1, -1, 0),
                () -> new SliceSample(1, 0, -1));
    }

    /** As counted in the published checkpoints. */
    @Test
    void gpt2HasAsManyParametersAsItsCheckpoints() {
        var extraLarge = new ModelShape(48, 1_600, 25, 50_257, 1_024, true);
        var untied = new ModelShape(12, 768, 12, 50_257, 1_024, false);

        assertThat(Clusters.GPT2.parameters()).isEqualTo(124_439_808L);
        assertThat(extraLarge.parameters()).isEqualTo(1_557_611_200L);
        assertThat(untied.parameters()).isEqualTo(124_439_808L + 50_257 * 768);
        assertThat(untied.withSequence(2_048).parameters())
                .isEqualTo(untied.parameters() + 1_024 * 768);
    }
}
