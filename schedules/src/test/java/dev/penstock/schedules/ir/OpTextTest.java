package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OpTextTest {
    @ParameterizedTest
    @ValueSource(
            strings = {
                "2F0",
                "0B11",
                "0SEND_F0",
                "1RECV_F0",
                "1SEND_B0",
                "0RECV_B0",
                "1OFFLOAD0",
                "1RELOAD0",
                "0REDUCE_GRAD"
            })
    void anOpReadsBackFromItsText(String text) {
        assertThat(OpText.print(OpText.parse(text).orElseThrow(), false)).isEqualTo(text);
    }

    @ParameterizedTest
    @ValueSource(strings = {"2F0s1", "0B1s0", "3SEND_F1s2", "2RELOAD0s1", "0REDUCE_GRAD"})
    void anOpOfASliceReadsBackFromItsText(String text) {
        assertThat(OpText.print(OpText.parse(text).orElseThrow(), true)).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({"2F0, 2F0", "2F0s3, 2F0s3"})
    void theSliceIsNamedWhereSequencesAreCut(String text, String printed) {
        var shape = PipelineShape.of(4, 1, text.contains("s") ? 4 : 1);

        assertThat(OpText.print(OpText.parse(text).orElseThrow(), shape)).isEqualTo(printed);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "F0",
                "2F",
                "2X0",
                "2f0",
                "-1F0",
                "2F0s",
                "2F0 ",
                "0REDUCE_GRAD1",
                "2SEND0",
                "9999999999F0",
                "2F0s0s0",
                "2F9999999999"
            })
    void otherTextIsNoOp(String text) {
        assertThat(OpText.parse(text)).isEmpty();
    }
}
