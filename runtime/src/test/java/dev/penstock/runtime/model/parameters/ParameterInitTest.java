package dev.penstock.runtime.model.parameters;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.actors.spi.TensorPiece.Strip;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.parameters.ParameterSpec.Initial;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

class ParameterInitTest {
    private static final BatchShape BATCH = TinyRuns.batch(List.of(16));

    @Test
    void firstValuesDoNotDependOnThePartition() {
        Map<String, float[]> one = initial(TinyRuns.UNTIED, 1, ParameterSource.none());
        Map<String, float[]> three = initial(TinyRuns.UNTIED, 3, ParameterSource.none());

        assertThat(three.keySet()).isEqualTo(one.keySet());
        one.forEach((name, values) -> assertThat(three.get(name)).as(name).isEqualTo(values));
    }

    @Test
    void firstValuesAreGpt2s() {
        Map<String, float[]> state = initial(TinyRuns.UNTIED, 1, ParameterSource.none());

        assertNormal(state, "wte.weight", 0.02);
        assertNormal(state, "lm_head.weight", 0.02);
        assertNormal(state, "h.1.attn.c_attn.weight", 0.02);
        assertNormal(state, "h.1.attn.c_proj.weight", 0.02 / Math.sqrt(6));
        assertNormal(state, "h.2.mlp.c_proj.weight", 0.02 / Math.sqrt(6));
        assertThat(state.get("h.0.ln_1.weight")).containsOnly(1);
        assertThat(state.get("h.0.mlp.c_fc.bias")).containsOnly(0);
        assertThat(state.get("optimizer.m.wte.weight")).containsOnly(0);
        assertThat(state.get("h.0.mlp.c_fc.weight")).isNotEqualTo(state.get("h.1.mlp.c_fc.weight"));
    }

    @Test
    void aPieceStartsAsTheWholeDoesThere() {
        ParameterInit init = new ParameterInit(ParameterSource.none(), 5, 3);
        var spec =
                ParameterSpec.matrix(
                        "h.0.attn.c_attn.weight",
                        TensorPiece.all(List.of(300, 900)),
                        Initial.NORMAL);
        var queryKeyValues =
                TensorPiece.strips(
                                spec.piece().whole(),
                                List.of(
                                        new Strip(0, 300, 100, 100),
                                        new Strip(0, 300, 400, 100),
                                        new Strip(0, 300, 700, 100)))
                        .stretch(4_321, 77_777);
        var rows = TensorPiece.strips(spec.piece().whole(), List.of(new Strip(7, 200, 0, 900)));
        MemorySegment whole = floats(spec.piece());
        init.fillDefault(spec, spec.piece(), whole);

        for (TensorPiece piece : List.of(queryKeyValues, rows)) {
            MemorySegment own = floats(piece);
            init.fillDefault(spec, piece, own);
            MemorySegment extracted = floats(piece);
            piece.extract(whole, extracted);
            assertThat(own.mismatch(extracted)).isEqualTo(-1);
        }
    }

    private static MemorySegment floats(TensorPiece piece) {
        return Arena.ofAuto().allocate(piece.elements() * Float.BYTES);
    }

    @Test
    void aSavedStateLoadsIntoAnyPartition() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 3, BATCH);
        try (PipelineDriver pipeline = TinyRuns.pipeline(settings)) {
            pipeline.train(1);
            Map<String, float[]> saved = pipeline.state();

            Map<String, float[]> loaded = initial(TinyRuns.TIED, 2, from(saved));

            assertThat(loaded.keySet()).isEqualTo(saved.keySet());
            saved.forEach((name, v) -> assertThat(loaded.get(name)).as(name).isEqualTo(v));
        }
    }

    @Test
    void aResumedRunGivesTheBitsOfAnUninterruptedOne() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 2, BATCH);
        try (PipelineDriver whole = TinyRuns.pipeline(settings)) {
            whole.train(1);
            whole.train(2);
            try (PipelineDriver resumed =
                    new PipelineDriver(
                            settings,
                            Orders.gpipe(2, 3, 1),
                            TinyRuns.tokens(37),
                            from(whole.state()))) {

                assertThat(resumed.train(3)).isEqualTo(whole.train(3));
                assertThat(resumed.train(4)).isEqualTo(whole.train(4));
            }
        }
    }

    @Test
    void anUntiedHeadStartsFromATiedFilesTokenTable() {
        Map<String, float[]> tied = initial(TinyRuns.TIED, 1, ParameterSource.none());

        Map<String, float[]> untied = initial(TinyRuns.UNTIED, 2, from(tied));

        assertThat(untied.get("lm_head.weight")).isEqualTo(tied.get("wte.weight"));
    }

    @Test
    void theQuantileFunctionAgreesWithTables() {
        assertThat(NormalQuantile.of(0.5)).isZero();
        assertThat(NormalQuantile.of(0.975)).isCloseTo(1.959963984540054, within(1e-14));
        assertThat(NormalQuantile.of(0.001)).isCloseTo(-3.090232306167813, within(1e-14));
        assertThat(NormalQuantile.of(1e-20)).isCloseTo(-9.262340089798408, within(1e-13));
    }

    private static void assertNormal(Map<String, float[]> state, String name, double deviation) {
        float[] values = Objects.requireNonNull(state.get(name));
        double squares = 0;
        double sum = 0;
        for (float value : values) {
            squares += (double) value * value;
            sum += value;
        }
        double tolerance = 5 * deviation / Math.sqrt(values.length);
        assertThat(Math.sqrt(squares / values.length)).isCloseTo(deviation, within(tolerance));
        assertThat(sum / values.length).isCloseTo(0, within(tolerance));
    }

    private static ParameterSource from(Map<String, float[]> tensors) {
        return (name, piece, destination) -> {
            float[] values = tensors.get(name);
            if (values != null) {
                piece.extract(MemorySegment.ofArray(values), destination);
            }
            return values != null;
        };
    }

    private static Map<String, float[]> initial(
            ModelShape shape, int stages, ParameterSource source) {
        try (PipelineDriver pipeline =
                new PipelineDriver(
                        TinyRuns.settings(shape, stages, BATCH),
                        Orders.gpipe(stages, 3, 1),
                        TinyRuns.tokens(37),
                        source)) {
            return pipeline.state();
        }
    }
}
