package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RankLayoutTest {
    private static final String RUN =
            "run.steps = 10, pipeline.stages = 4, parallel { data = 1, zero.stage = 0 },"
                    + " schedule.kind = 1f1b, device.precision = float32, recovery.mirror = off,"
                    + " model.layers = 4, optimizer.learning-rate = 0.1\n";

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pipeline.stages = 2, parallel.data = 2",
                "parallel.zero.stage = 1",
                "schedule.kind = zb-h1",
                "device.precision = bf16",
                "recovery.mirror = on"
            })
    void whatGivesARankOtherWorkOrMemoryIsAnotherLayout(String change) {
        assertThat(RankLayout.of(RUN + change)).hasSize(8).isNotEqualTo(RankLayout.of(RUN));
    }

    @Test
    void whatDoesNotIsTheSame() {
        assertThat(RankLayout.of(RUN + "run.steps = 20, optimizer.learning-rate = 0.2"))
                .isEqualTo(RankLayout.of(RUN));
    }
}
