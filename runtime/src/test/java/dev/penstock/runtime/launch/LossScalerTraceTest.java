package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.precision.LossScaleHistory;
import dev.penstock.actors.precision.LossScaler;
import dev.penstock.actors.precision.LossScaling;
import java.io.IOException;
import java.io.InputStream;
import java.util.BitSet;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Loss scalers beside a trace of Megatron-LM's own, of 10,000 steps. */
class LossScalerTraceTest {
    private static final LossScaling MEGATRON = new LossScaling(true, 0x1p32, 1000, 2);

    private static JsonNode trace() throws IOException {
        try (InputStream in =
                LossScalerTraceTest.class.getResourceAsStream("/golden-models/loss-scaler.json")) {
            return new ObjectMapper().readTree(Objects.requireNonNull(in));
        }
    }

    private static BitSet overflows(JsonNode trace) {
        var flags = new BitSet();
        for (JsonNode span : trace.get("overflow_spans_start_length")) {
            int start = span.get(0).asInt();
            flags.set(start, start + span.get(1).asInt());
        }
        return flags;
    }

    @Test
    void everyStateIsMegatrons() throws IOException {
        JsonNode trace = trace();
        BitSet overflows = overflows(trace);
        LossScaler scaler = LossScaler.first(MEGATRON);
        int step = 0;

        for (JsonNode run : trace.get("megatron").get("runs")) {
            for (int i = 0; i < run.get(0).asInt(); i++) {
                scaler = scaler.after(overflows.get(step++));

                assertThat(scaler.scale()).as("scale %d", step).isEqualTo(run.get(1).asDouble());
                assertThat(scaler.growth())
                        .as("growth %d", step)
                        .isEqualTo(run.get(2).asInt() + i * run.get(3).asInt());
                assertThat(scaler.hysteresis())
                        .as("hysteresis %d", step)
                        .isEqualTo(run.get(4).asInt());
            }
        }

        assertThat(step).isEqualTo(10_000);
        assertThat(scaler.skipped()).isEqualTo(trace.get("overflows").asLong());
    }

    @Test
    void stateFollowsFromTheFirstOneAndTheOverflows() throws IOException {
        BitSet overflows = overflows(trace());
        var told = new LossScaleHistory(Optional.of(LossScaler.first(MEGATRON)), 0);
        IntStream.range(0, 9000).forEach(i -> told.take(i + 1, overflows.get(i)));
        LossScaler after7000 = null;
        LossScaler scaler = LossScaler.first(MEGATRON);
        for (int i = 0; i < 9000; i++) {
            after7000 = i == 7000 ? scaler : after7000;
            scaler = scaler.after(overflows.get(i));
        }

        assertThat(told.now()).contains(scaler);
        told.goBackTo(7000);
        assertThat(told.now()).contains(Objects.requireNonNull(after7000));
        var again = new LossScaleHistory(Optional.of(LossScaler.first(MEGATRON)), 0);
        again.replay(overflows.stream().filter(i -> i < 7000).mapToObj(i -> i + 1L).toList(), 7000);
        assertThat(again.now()).contains(after7000);
    }

    @Test
    void stateIsReadAsItWasWritten() {
        LossScaler scaler = LossScaler.first(MEGATRON).after(true).after(true).after(false);

        assertThat(LossScaler.parse(MEGATRON, scaler.text())).contains(scaler);
        assertThat(LossScaler.parse(LossScaling.constant(256), scaler.text()))
                .map(LossScaler::scale)
                .contains(256.0);
        assertThat(LossScaler.parse(MEGATRON, "")).isEmpty();
        assertThat(LossScaler.parse(MEGATRON, "0x1.8p3 0 0 0 0")).isEmpty();
    }

    @Test
    void tenOverflowsInARowWithTheLeastScaleAreNoMatterOfTheScale() {
        LossScaler scaler = LossScaler.first(new LossScaling(true, 2, 1000, 1));
        assertThat(scaler.after(true).stuck()).isZero();
        for (int i = 0; i < 10; i++) {
            scaler = scaler.after(true);
        }
        assertThat(scaler.isStuck()).isFalse();
        assertThat(scaler.after(true).isStuck()).isTrue();
        assertThat(scaler.after(false).after(true).isStuck()).isFalse();
    }
}
