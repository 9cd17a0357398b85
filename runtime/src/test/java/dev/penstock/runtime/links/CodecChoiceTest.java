package dev.penstock.runtime.links;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.run.DataPlaneSection.Codec;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

final class CodecChoiceTest {
    private static CodecChoice choice(long none, long fp16, long int8) {
        Map<Codec, Long> nanos = Map.of(Codec.NONE, none, Codec.FP16, fp16, Codec.INT8, int8);
        return CodecChoice.of(codec -> nanos.getOrDefault(codec, 0L));
    }

    @Test
    void theFastestIsTakenIfItIsWorthIt() {
        assertThat(choice(100, 97, 98).codec()).isEqualTo(Codec.NONE);
        assertThat(choice(100, 96, 95).codec()).isEqualTo(Codec.FP16);
        assertThat(choice(100, 60, 40).codec()).isEqualTo(Codec.INT8);
        assertThat(choice(100, 200, 300).codec()).isEqualTo(Codec.NONE);
    }

    @Test
    void theReasonNamesTimes() {
        assertThat(
                        choice(4_400_000_000L, 2_300_000_000L, 1_200_000_000)
                                .reason(Optional.of("100 Mbit/s")))
                .isEqualTo("int8: over 100 Mbit/s a step takes 1.20 s instead of 4.40 s");
        assertThat(choice(10_000_000, 10_100_000, 10_200_000).reason(Optional.empty()))
                .isEqualTo("none: a step takes 10.0 ms, and 10.1 ms with fp16, 10.2 ms with int8");
    }
}
