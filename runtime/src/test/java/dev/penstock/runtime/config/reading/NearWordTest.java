package dev.penstock.runtime.config.reading;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NearWordTest {
    @ParameterizedTest
    @CsvSource({
        "interleaved, interleaved-1f1b",
        "Interleaved, interleaved-1f1b",
        "1f1b-interleaved, interleaved-1f1b",
        "interleaved-seq1f1b, seq1f1b-interleaved",
        "interleaved-zb1, interleaved-zb",
        "interleavedzb, interleaved-zb",
        "zb, zb-h1",
        "zb-h3, zb-h1",
        "zbv, zb-v",
        "v, v-half",
        "dualpipe, dualpipe-v",
        "breadth_first, breadth-first",
        "breadth, breadth-first",
        "gpip, gpipe",
        "1f1, 1f1b",
        "terapip, terapipe",
        "seq1f1, seq1f1b"
    })
    void ofOrdersTheFirstThatGoesOnLikeTheWordIsMeant(String word, String meant) {
        assertThat(NearWord.among(Generators.kinds(), word)).contains(meant);
    }

    @Test
    void whatIsNotNearIsNotMeant() {
        assertThat(NearWord.among(Generators.kinds(), "pipedream")).isEmpty();
        assertThat(NearWord.among(Generators.kinds(), "")).isEmpty();
        assertThat(NearWord.among(List.of(), "zb")).isEmpty();
    }
}
