package dev.penstock.runtime.planning;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.StepTraffic;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class SentBytesTest {
    private static final StepTraffic ONE = new StepTraffic(1024, 0, 0, 0, 0, 0, 0, 0, 0);
    private static final StepTraffic TWO = new StepTraffic(2048, 0, 0, 0, 0, 0, 0, 0, 0);

    @Test
    void ranksThatSendTheSameShareALine() {
        assertThat(SentBytes.lines(List.of(ONE, ONE, StepTraffic.NOTHING, TWO, ONE)))
                .containsExactly(
                        "bytes sent per training step:",
                        "  ranks 0-1, 4: activations 1.0 KiB",
                        "  rank 3: activations 2.0 KiB");
        assertThat(SentBytes.lines(List.of(StepTraffic.NOTHING))).isEmpty();
    }

    @Test
    void thousandsOfRanksAreCounted() {
        List<StepTraffic> ranks =
                IntStream.range(0, 3072).mapToObj(rank -> rank % 64 < 4 ? ONE : TWO).toList();

        assertThat(SentBytes.lines(ranks))
                .containsExactly(
                        "bytes sent per training step:",
                        "  192 ranks (0-3, 64-67, 128-131, 192-195, 256-259, 320-323, 384-387,"
                                + " 448-451, ..): activations 1.0 KiB",
                        "  2880 ranks (4-63, 68-127, 132-191, 196-255, 260-319, 324-383, 388-447,"
                                + " 452-511, ..): activations 2.0 KiB");
    }
}
