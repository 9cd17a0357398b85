package dev.penstock.schedules.plan.work;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.SliceBalance;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertRecompute;
import dev.penstock.schedules.plan.CountingHardware;
import dev.penstock.schedules.validate.RankBytes;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class ModelShapeTest {
    /** Grouped queries wider than the stream, a gated MLP, windows; nothing divides nicely. */
    private static final ModelShape GROUPED = grouped(List.of(5, 0, 5));

    private static ModelShape grouped(List<Integer> windows) {
        var block = new BlockShape(2, 6, 21, 2, 32, windows);
        return new ModelShape(3, 16, 4, 31, 20, false, block, 0, 16);
    }

    /** The count that its publisher gives. */
    @Test
    void aLlamaHasAsManyParametersAsItsCheckpoint() {
        var block = new BlockShape(8, 128, 14_336, 2, 2 * 4_096, List.of());
        var llama = new ModelShape(32, 4_096, 32, 128_256, 8_192, false, block, 0, 4_096);

        assertThat(llama.parameters()).isEqualTo(8_030_261_248L);
        assertThat(llama.withSequence(100).parameters()).isEqualTo(8_030_261_248L);
    }

    @Test
    void aTableOfPositionsIsAsLongAsSequencesNeed() {
        var block = BlockShape.gpt2(8, 2);
        var longer = new ModelShape(1, 8, 2, 31, 20, true, block, 50, 16);

        assertThat(longer.withSequence(40).places()).isEqualTo(50);
        assertThat(longer.withSequence(60).places()).isEqualTo(60);
        assertThat(new ModelShape(1, 8, 2, 31, 20, true).withSequence(7).places()).isEqualTo(7);
    }

    @Test
    void theMeanContextIsWhatTokensSeeCountedOneByOne() {
        for (List<Integer> windows :
                List.of(
                        List.<Integer>of(),
                        List.of(1, 1, 1),
                        List.of(5, 0, 5),
                        List.of(0, 9, 30))) {
            for (int before = 0; before < 12; before++) {
                for (int length = 1; length < 12; length++) {
                    double mean = grouped(windows).meanContext(before, length);

                    assertThat(mean)
                            .as("%d after %d in %s", length, before, windows)
                            .isCloseTo(seen(windows, before, length), within(1e-12));
                }
            }
        }
    }

    private static double seen(List<Integer> windows, int before, int length) {
        double sum = 0;
        for (int layer = 0; layer < 3; layer++) {
            int window = windows.isEmpty() ? 0 : windows.get(layer);
            for (int token = before; token < before + length; token++) {
                sum += window == 0 ? token + 1 : Math.min(token + 1, window);
            }
        }
        return sum / 3 / length;
    }

    /** A token counts the middle of itself: so do the FLOPs that slices balance. */
    @Test
    void slicesBalanceWhatTokensSeeInTheirWindows() {
        SliceBalance law = GROUPED.sliceBalance();

        for (int before = 0; before < 12; before++) {
            for (int length = 1; length < 12; length++) {
                long doubled = 0;
                for (int window : List.of(5, 0, 5)) {
                    for (int token = before; token < before + length; token++) {
                        boolean all = window == 0 || token < window;
                        doubled += 2 * 2 * GROUPED.blockMatrixParameters();
                        doubled += 4L * 24 * (all ? 2 * token + 1 : 2 * window);
                    }
                }
                assertThat(law.doubledFlops(length, before)).isEqualTo(doubled);
            }
        }
    }

    /** One nanosecond for each FLOP of two products with each weight, and of attention's. */
    @Test
    void aBlocksTimeIsThatOfItsFlops() {
        Layout alone = new Layout(1, 1, 1);
        var request =
                new PlanRequest(GROUPED, CountingHardware.BYTES, CountingHardware.cluster(1, 1), 1);
        RankHardware rank = LayoutHardware.of(request.cluster(), alone).ranks().getFirst();
        long weights = 16 * (24 + 2 * 12) + 24 * 16 + 16 * 2 * 21 + 21 * 16;

        BlockWork work =
                BlockWork.of(
                        GROUPED, request.bytes(), rank, 1, 8, GROUPED.meanContext(4, 8), false);

        long attention = Math.round(4 * 24 * 8 * seen(List.of(5, 0, 5), 4, 8));
        assertThat(GROUPED.blockMatrixParameters()).isEqualTo(weights);
        assertThat(work.forward()).isEqualTo(2 * 8 * weights + attention);
        assertThat(work.backwardInput()).isEqualTo(2 * 8 * weights + 2 * attention);
        assertThat(work.backwardWeight()).isEqualTo(2 * 8 * weights);
        assertThat(work.head()).isEqualTo(2 * 8 * 31 * 16);
    }

    /** Two inputs of norms, two of products, and masks of 16 columns; the rest by its widths. */
    @Test
    void unitsKeepTheColumnsThatTheirBlocksHave() {
        Schedule whole = Generators.generate("gpipe", PipelineShape.of(3, 1));
        Schedule sliced =
                Generators.generate("seq1f1b", new PipelineShape(3, 1, 1, List.of(8, 12)));
        long columns = 5 * 16 + 24 + 2 * 12 + 24 + 2 * 21 + 21;

        assertThat(peaks(whole).get(1).activationBytes()).isEqualTo(2 * 20 * columns);
        assertThat(peaks(sliced).get(1).activationBytes()).isEqualTo(2 * 20 * columns);
        // of the input of its stage, and of keys and values that the second slice needs
        assertThat(peaks(InsertRecompute.into(sliced)).get(1).inputBytes())
                .isEqualTo(2 * 8 * (16 + 2 * 12));
    }

    private static List<RankBytes> peaks(Schedule order) {
        List<Long> most = Collections.nCopies(3, 1L << 40);
        return RankBytes.of(
                order,
                PassKind.TRAINING,
                OrderMemory.limit(GROUPED, TrainingBytes.MIXED, order, List.of(1, 1, 1), 1, 1, most)
                        .model());
    }

    @Test
    void shardsTakeWholeHeadsOfKeysAndEqualHiddenColumns() {
        var even = new BlockShape(2, 6, 22, 2, 32, List.of());
        var divided = new ModelShape(3, 16, 4, 31, 20, false, even, 0, 16);

        assertThat(tensors(divided)).containsOnly(1, 2);
        assertThat(tensors(GROUPED)).containsOnly(1); // 21 hidden columns
    }

    private static List<Integer> tensors(ModelShape model) {
        var request =
                new PlanRequest(model, TrainingBytes.MIXED, CountingHardware.cluster(1, 4), 4);
        return Layouts.of(request).stream().map(Layout::tensor).distinct().toList();
    }

    @Test
    void sizesThatMakeNoBlockAreRefused() {
        assertThatThrownBy(() -> grouped(List.of(5, 5))).hasMessageContaining("each of 3 layers");
        assertThatThrownBy(() -> grouped(List.of(5, -1, 5)))
                .hasMessageContaining("1 token or more");
        assertThatThrownBy(
                        () ->
                                new ModelShape(
                                        1,
                                        8,
                                        4,
                                        9,
                                        9,
                                        true,
                                        new BlockShape(3, 2, 8, 1, 0, List.of()),
                                        9,
                                        8))
                .hasMessageContaining("divisor of 4 heads, got 3 of keys");
        assertThatThrownBy(() -> new BlockShape(1, 1, 0, 1, 0, List.of()))
                .hasMessageContaining("0 hidden columns");
    }
}
