package dev.penstock.runtime.data.rows;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class WindowsTest {
    @Test
    void aPermutationVisitsEveryIndexOnce() {
        for (int size = 1; size < 300; size++) {
            Permutation permutation = new Permutation(size, size * 31L);
            BitSet seen = new BitSet();
            for (int i = 0; i < size; i++) {
                seen.set((int) permutation.at(i));
            }
            assertThat(seen.cardinality()).as("size %d", size).isEqualTo(size);
            assertThat(seen.length()).as("size %d", size).isEqualTo(size);
        }
    }

    @Test
    void anEpochVisitsEveryWindowExactlyOnceWhateverTheLength() {
        for (int context : new int[] {1, 2, 7, 8}) {
            for (int length = context + 1; length < 6 * context + 12; length++) {
                Windows windows = new Windows(100, length, context, 5);
                for (long epoch = 0; epoch < 4; epoch++) {
                    checkEpoch(windows, epoch, length, context);
                }
            }
        }
    }

    private static void checkEpoch(Windows windows, long epoch, int length, int context) {
        List<Long> starts = starts(windows, epoch).sorted().boxed().toList();
        String what = "length %d, context %d, epoch %d".formatted(length, context, epoch);
        for (int i = 1; i < starts.size(); i++) {
            assertThat(starts.get(i) - starts.get(i - 1)).as(what).isEqualTo(context);
        }
        assertThat(starts.getFirst()).as(what).isGreaterThanOrEqualTo(100);
        assertThat(starts.getLast() + context + 1).as(what).isLessThanOrEqualTo(100 + length);
        assertThat(starts.size()).as(what).isGreaterThanOrEqualTo((length - context) / context);
    }

    @Test
    void epochsAndSeedsDifferInOrderAndShift() {
        Windows windows = new Windows(0, 10_000, 16, 1);
        List<Long> first = starts(windows, 0).boxed().toList();

        assertThat(starts(windows, 1).boxed().toList()).isNotEqualTo(first);
        assertThat(starts(new Windows(0, 10_000, 16, 2), 0).boxed().toList()).isNotEqualTo(first);
        assertThat(starts(new Windows(0, 10_000, 16, 1), 0).boxed().toList()).isEqualTo(first);
        List<Long> shifts = new ArrayList<>();
        for (long epoch = 0; epoch < 40; epoch++) {
            shifts.add(windows.start(epoch * windows.count()) % 16);
        }
        assertThat(shifts.stream().distinct().count()).isGreaterThan(10);
    }

    @Test
    void theOrderLooksRandom() {
        Windows windows = new Windows(0, 80_000, 8, 3);
        long[] starts = starts(windows, 0).toArray();
        double drift = 0;
        int steps = starts.length - 1;
        for (int i = 0; i < steps; i++) {
            drift += Math.abs(starts[i + 1] - starts[i]);
        }

        // two uniform draws are a third of the range apart on average
        assertThat(drift / steps / 80_000).isBetween(0.32, 0.35);
    }

    private static LongStream starts(Windows windows, long epoch) {
        return LongStream.range(0, windows.count())
                .map(i -> windows.start(epoch * windows.count() + i));
    }
}
