package dev.penstock.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.benchmarks.roofline.Card;
import dev.penstock.benchmarks.roofline.Gpt2Step;
import dev.penstock.benchmarks.roofline.Work;
import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.EmulatedGpus.Count;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * The model of a step against a step on the emulator, which counts what its kernels read, write and
 * compute.
 */
class Gpt2StepTest {
    /** A whole tile of keys, a vocabulary that products split, and more rows than tokens. */
    private static final TrainingShape SHAPE = new TrainingShape("tiny", 1, 64, 1, 64, 1_027);

    private static final int SEQUENCES = 2;
    private static final int MEASURED_STEP = 2;

    @BeforeAll
    static void checkedKernels() {
        EmulatedGpus.check();
    }

    @AfterAll
    static void othersAgain() {
        EmulatedGpus.checkNoMore();
    }

    @Test
    void aStepHasTheLaunchesBytesAndOperationsOfTheModelAndWaitsOnceForAnOp() {
        for (boolean bf16 : new boolean[] {true, false}) {
            Step counted = counted(bf16);
            Gpt2Step model = model(bf16);

            Map<String, Work> works = new LinkedHashMap<>();
            for (Work each : model.works()) { // the emulator knows of no head
                works.merge(each.kernel(), each, Gpt2StepTest::sum);
            }
            assertThat(counted.kernels().keySet())
                    .as("kernels, bf16: %s", bf16)
                    .containsExactlyInAnyOrderElementsOf(works.keySet());
            List<String> differences = new ArrayList<>();
            works.forEach((name, work) -> compare(work, counted.kernels().get(name), differences));
            assertThat(differences).as("bf16: %s", bf16).isEmpty();
            assertThat(counted.waits()).isPositive().isLessThanOrEqualTo(counted.ops());
        }
    }

    private static Work sum(Work one, Work other) {
        return new Work(
                one.kernel(),
                one.kind(),
                one.launches() + other.launches(),
                one.read() + other.read(),
                one.written() + other.written(),
                one.operations() + other.operations());
    }

    /**
     * Bytes within 3 %, or what parameters that are not counted singly may take; operations
     * exactly, where there are tensor cores.
     */
    private static void compare(Work work, Count count, List<String> differences) {
        boolean near =
                Math.abs(work.read() - count.read()) <= 0.03 * count.read() + 4_096
                        && Math.abs(work.written() - count.written())
                                <= 0.03 * count.written() + 4_096;
        boolean sameWork = count.operations() == 0 || work.operations() == count.operations();
        if (work.launches() != count.launches() || !near || !sameWork) {
            differences.add("model %s, counted %s".formatted(work, count));
        }
    }

    private record Step(Map<String, Count> kernels, long waits, long ops) {}

    private static Step counted(boolean bf16) {
        List<Step> steps = new ArrayList<>();
        RunListener listener =
                new RunListener() {
                    private long waitsBefore;

                    @Override
                    public void onStep(StepReport report) {
                        long waits = EmulatedGpus.waits();
                        long ops = report.ranks().getFirst().opEndNanos().length;
                        steps.add(new Step(EmulatedGpus.counted(), waits - waitsBefore, ops));
                        waitsBefore = waits;
                    }
                };
        var setup =
                new TrainingMeasurement.Setup(
                        "counted",
                        SHAPE,
                        MEASURED_STEP,
                        SEQUENCES,
                        1,
                        List.of(
                                "device.kind=\"cuda:0\"",
                                "device.gemm=cublas",
                                "device.precision=" + (bf16 ? "bf16" : "f32")));
        return ShortRun.watched(setup, listener, _ -> steps.get(MEASURED_STEP - 1));
    }

    private static Gpt2Step model(boolean bf16) {
        return new Gpt2Step(
                SHAPE.layers(),
                SHAPE.width(),
                SHAPE.heads(),
                SHAPE.context(),
                SHAPE.vocabulary(),
                SEQUENCES,
                bf16);
    }

    @Test
    void theModelGivesTheMeasuredStepOfAnH200AndNoStepBelowTheLimitsOfACard() {
        Gpt2Step measured = GpuModelBenchmark.step("124m:16");

        assertThat(GpuModelBenchmark.millis(measured, Card.H200)).isBetween(46.0, 50.0);
        assertThat(measured.works())
                .allSatisfy(
                        each ->
                                assertThat(Card.H100.seconds(each, true))
                                        .isGreaterThan(Card.H100.leastSeconds(each, true)));
        // 6 operations for each weight of a product and token, and attention
        assertThat(measured.works().stream().mapToDouble(Work::operations).sum())
                .isBetween(6 * 123.5e6 * 16_384, 1.15 * 6 * 124.4e6 * 16_384);
    }
}
