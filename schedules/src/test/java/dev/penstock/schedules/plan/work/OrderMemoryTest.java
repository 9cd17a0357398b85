package dev.penstock.schedules.plan.work;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.InsertRecompute;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.MemoryLimit;
import dev.penstock.schedules.validate.RankBytes;
import dev.penstock.schedules.validate.ScheduleValidator;
import dev.penstock.schedules.validate.Violation;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class OrderMemoryTest {
    private static final ModelShape MODEL = new ModelShape(8, 64, 4, 1_000, 128, true);
    private static final List<Integer> TWO_EACH = List.of(2, 2, 2, 2);
    private static final long BLOCK = 12L * 64 * 64 + 13 * 64;

    /** Activations of a block with 16-bit numbers, 34 s b h, for two sequences. */
    private static final long KEPT = 34L * 128 * 2 * 64;

    private static MemoryLimit limit(Schedule order, int replicas) {
        List<Long> most = Collections.nCopies(4, 1L << 40);
        return OrderMemory.limit(MODEL, TrainingBytes.MIXED, order, TWO_EACH, 2, replicas, most);
    }

    private static List<RankBytes> peaks(Schedule order, MemoryLimit limit) {
        return RankBytes.of(order, PassKind.TRAINING, limit.model());
    }

    @Test
    void unitsWeighWhatTheirBlocksKeep() {
        Schedule order = Generators.generate("1f1b", PipelineShape.of(4, 8));

        List<RankBytes> peaks = peaks(order, limit(order, 1));

        // 4 units on rank 0; the last norm keeps its input
        assertThat(peaks.get(0).activationBytes()).isEqualTo(4 * 2 * KEPT);
        assertThat(peaks.get(1).activationBytes()).isEqualTo(3 * 2 * KEPT);
        assertThat(peaks.get(3).activationBytes()).isEqualTo(2 * KEPT + 2L * 128 * 2 * 64);
    }

    @Test
    void aRankHoldsSixteenBytesOfEachParameterThroughoutOrItsShare() {
        Schedule plain = Lowering.lower(Generators.generate("gpipe", PipelineShape.of(4, 2)));
        LoweringOptions sharded =
                LoweringOptions.plain()
                        .withGathers(new GatherSettings(ParameterResidency.PER_PASS, 0));
        Schedule gathered =
                Lowering.lower(Generators.generate("gpipe", PipelineShape.of(4, 2)), sharded);

        MemoryLimit alone = limit(plain, 4);
        MemoryLimit divided = limit(gathered, 4);

        long saved = alone.heldThroughout().get(1) - divided.heldThroughout().get(1);
        assertThat(saved).isEqualTo(16 * 2 * BLOCK * 3 / 4);
        assertThat(peaks(gathered, divided).get(1).gatheredBytes()).isEqualTo(2 * 2 * BLOCK);
        assertThat(peaks(plain, alone).get(1).gatheredBytes()).isZero();
        // the embedding belongs to the first stage, the tied head to the last
        assertThat(divided.model().gatheredBytes().get(0))
                .containsExactly(2 * (BLOCK + 1_128 * 64), 2 * BLOCK);
        assertThat(divided.model().gatheredBytes().get(3))
                .containsExactly(2 * BLOCK, 2 * (BLOCK + 2 * 64 + 1_000 * 64));
    }

    @Test
    void recomputedUnitsHoldTheInputOfTheirStageAlone() {
        Schedule order = InsertRecompute.into(Generators.generate("gpipe", PipelineShape.of(4, 8)));

        RankBytes peak = peaks(order, limit(order, 1)).get(1);

        assertThat(peak.activationBytes()).isEqualTo(2 * KEPT);
        assertThat(peak.inputBytes()).isEqualTo(7 * 2L * 128 * 2 * 64);
    }

    @Test
    void whatIsHeldThroughoutCountsAgainstTheLimit() {
        Schedule order = Generators.generate("gpipe", PipelineShape.of(4, 2));
        MemoryLimit all = limit(order, 1);
        long needs = all.heldThroughout().get(1) + 2 * 2 * KEPT;
        List<Long> exactly = List.of(1L << 40, needs, 1L << 40, 1L << 40);
        List<Long> less = List.of(1L << 40, needs - 1, 1L << 40, 1L << 40);

        assertThat(violations(order, new MemoryLimit(all.model(), exactly, all.heldThroughout())))
                .isEmpty();
        assertThat(violations(order, new MemoryLimit(all.model(), less, all.heldThroughout())))
                .singleElement()
                .isInstanceOfSatisfying(
                        Violation.MemoryExceeded.class,
                        violation -> {
                            assertThat(violation.place().rank()).isEqualTo(1);
                            assertThat(violation.peakBytes()).isEqualTo(needs);
                            assertThat(violation.limitBytes()).isEqualTo(needs - 1);
                            assertThat(violation.message())
                                    .contains(
                                            "rank 1 holds", "at 1F1", "throughout", "2 of stage 1");
                        });
    }

    private static List<Violation> violations(Schedule order, MemoryLimit limit) {
        return ScheduleValidator.validate(order, Conditions.training().withMemoryLimit(limit))
                .violations();
    }
}
