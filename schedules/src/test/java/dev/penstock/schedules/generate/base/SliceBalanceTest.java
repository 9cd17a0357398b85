package dev.penstock.schedules.generate.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SliceBalanceTest {
    private static long dearest(SliceBalance law, List<Integer> lengths) {
        long dearest = 0;
        int context = 0;
        for (int length : lengths) {
            dearest = Math.max(dearest, law.doubledFlops(length, context));
            context += length;
        }
        return dearest;
    }

    /** Tries every way to cut. */
    private static long bruteForce(SliceBalance law, int context, int rest, int slices, int grid) {
        if (slices == 1) {
            return law.doubledFlops(rest, context);
        }
        long best = Long.MAX_VALUE;
        for (int length = grid; rest - length >= (slices - 1) * grid; length += grid) {
            long others = bruteForce(law, context + length, rest - length, slices - 1, grid);
            best = Math.min(best, Math.max(law.doubledFlops(length, context), others));
        }
        return best;
    }

    @Test
    void noOtherCutHasACheaperDearestSlice() {
        for (long perToken = 0; perToken <= 20; perToken += 5) {
            for (long perPair = perToken == 0 ? 1 : 0; perPair <= 3; perPair++) {
                var law = new SliceBalance(perToken, perPair);
                for (int grid = 1; grid <= 3; grid++) {
                    for (int tokens = grid; tokens <= 14 * grid; tokens += grid) {
                        for (int slices = 1; slices <= Math.min(4, tokens / grid); slices++) {
                            List<Integer> lengths = law.lengths(tokens, slices, grid);

                            assertThat(dearest(law, lengths))
                                    .as("%s: %s", law, lengths)
                                    .isEqualTo(bruteForce(law, 0, tokens, slices, grid));
                        }
                    }
                }
            }
        }
    }

    /** From the last slice backwards: the fairest of all cuts with the cheapest largest slice. */
    @Test
    void everySliceIsAsNearToItsShareAsTheDearestSliceAllows() {
        for (SliceBalance law : List.of(new SliceBalance(9, 2), new SliceBalance(0, 1))) {
            for (int grid = 1; grid <= 2; grid++) {
                for (int slices = 2; slices <= 4; slices++) {
                    for (int tokens = slices * grid; tokens <= 15 * grid; tokens += grid) {
                        List<Integer> lengths = law.lengths(tokens, slices, grid);

                        assertThat(lengths)
                                .as("%s of %d tokens", law, tokens)
                                .isEqualTo(fairest(law, tokens, slices, grid));
                    }
                }
            }
        }
    }

    private static List<Integer> fairest(SliceBalance law, int tokens, int slices, int grid) {
        long limit = bruteForce(law, 0, tokens, slices, grid);
        var lengths = new ArrayList<Integer>();
        int rest = tokens;
        for (int before = slices - 1; before > 0; before--) {
            long share = law.doubledFlops(rest, 0) / (before + 1);
            int fairest = -1;
            long least = Long.MAX_VALUE;
            for (int cut = before * grid; cut < rest; cut += grid) {
                long flops = law.doubledFlops(rest - cut, cut);
                boolean cheap = flops <= limit && bruteForce(law, 0, cut, before, grid) <= limit;
                if (cheap && Math.abs(flops - share) < least) {
                    least = Math.abs(flops - share);
                    fairest = cut;
                }
            }
            lengths.addFirst(rest - fairest);
            rest = fairest;
        }
        lengths.addFirst(rest);
        return lengths;
    }

    @Test
    void slicesFillTheSequenceInMultiplesOfTheGrid() {
        for (int grid = 1; grid <= 4; grid++) {
            for (int units = 1; units <= 40; units++) {
                for (int slices = 1; slices <= Math.min(8, units); slices++) {
                    int multiple = grid;
                    List<Integer> lengths =
                            new SliceBalance(3, 2).lengths(units * grid, slices, grid);

                    assertThat(lengths).hasSize(slices);
                    assertThat(lengths).allMatch(length -> length > 0 && length % multiple == 0);
                    assertThat(lengths.stream().mapToInt(Integer::intValue).sum())
                            .isEqualTo(units * grid);
                }
            }
        }
    }

    @Test
    void onAFineGridAllSlicesCostTheSame() {
        var law = SliceBalance.ofWidth(768);
        List<Integer> lengths = law.lengths(32_768, 8, 1);

        int context = 0;
        for (int length : lengths) {
            double share = law.doubledFlops(length, context) / (law.doubledFlops(32_768, 0) / 8.0);
            assertThat(share).isCloseTo(1, within(1e-3));
            context += length;
        }
        assertThat(lengths).isSortedAccordingTo((a, b) -> b - a);
    }

    @Test
    void noOtherCutOfLayersWithWindowsHasACheaperDearestSlice() {
        for (List<Integer> windows : List.of(List.of(3), List.of(5, 0), List.of(2, 2, 9))) {
            var law = new SliceBalance(4, 3, windows);
            for (int tokens = 1; tokens <= 16; tokens++) {
                for (int slices = 1; slices <= Math.min(4, tokens); slices++) {
                    List<Integer> lengths = law.lengths(tokens, slices, 1);

                    assertThat(dearest(law, lengths))
                            .as("%s: %s", law, lengths)
                            .isEqualTo(bruteForce(law, 0, tokens, slices, 1));
                }
            }
        }
    }

    /** After the first tokens all cost the same. */
    @Test
    void layersWithAShortWindowAreCutAlmostEqually() {
        List<Integer> dense = SliceBalance.ofWidth(64).lengths(4_096, 4, 1);
        List<Integer> local = new SliceBalance(24 * 64 * 64, 4 * 64, List.of(16)).lengths(4_096, 4);

        assertThat(dense.getFirst()).isGreaterThan(2 * dense.getLast());
        assertThat(local.getFirst() - local.getLast()).isBetween(0, 8);
        assertThat(new SliceBalance(24 * 64 * 64, 4 * 64, List.of(5_000)).lengths(4_096, 4, 1))
                .isEqualTo(dense);
    }

    /** Only the mix of windows matters, not how many layers have it. */
    @Test
    void windowsAreKeptAsFewAsTheirMixTakes() {
        assertThat(new SliceBalance(3, 2, List.of(5, 0, 5, 0)))
                .isEqualTo(new SliceBalance(3, 2, List.of(0, 5)));
        assertThat(new SliceBalance(3, 2, List.of(0, 0))).isEqualTo(new SliceBalance(3, 2));
        assertThat(new SliceBalance(3, 2, List.of(5, 5, 0)).windows()).containsExactly(0, 5, 5);
    }

    @Test
    void attentionAloneCutsAtSquareRoots() {
        // the work of the first n tokens is n^2 / 2: halves meet at 100 / sqrt(2), quarters at
        // 100 x sqrt(i / 4)
        assertThat(new SliceBalance(0, 1).lengths(100, 2, 1)).containsExactly(71, 29);
        assertThat(new SliceBalance(0, 1).lengths(100, 4, 1)).containsExactly(50, 21, 16, 13);
    }

    @Test
    void withoutAttentionSlicesAreEqual() {
        assertThat(new SliceBalance(7, 0).lengths(2048, 4, 8)).containsOnly(512);
    }

    @Test
    void aGridThatDoesNotFitIsRefused() {
        var law = SliceBalance.ofWidth(64);

        assertThatThrownBy(() -> law.lengths(100, 3, 8))
                .hasMessage(
                        "3 slices in multiples of 8 tokens need a sequence of a multiple of that, at least 24, got 100");
        assertThatThrownBy(() -> law.lengths(16, 3, 8)).hasMessageContaining("at least 24, got 16");
        assertThatThrownBy(() -> new SliceBalance(0, 0)).hasMessageContaining("costs something");
    }
}
