package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.memory.MemoryChoices;
import dev.penstock.runtime.memory.Rates;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs whose moments are kept in 8 bits. */
class CodedMomentsRunTest {
    private static final String CODED = "optimizer.state=int8";

    @TempDir private Path folder;
    private int runs;

    private Training tiny(String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=8", "evaluation.every=4", "checkpoint.every=0")
                .set("model.layers=4", CODED)
                .set("optimizer.gradient-sum=fixed-point")
                .set(settings);
    }

    private static void expectSame(Trained actual, Trained expected) {
        assertThat(actual.lossBits()).isEqualTo(expected.lossBits());
        assertThat(actual.validationBits()).isEqualTo(expected.validationBits());
    }

    @Test
    void aLayoutChangesNoBit() throws IOException {
        Training one = tiny("pipeline.stages=1");
        Trained plain = one.complete();
        assertThat(plain.peakBytes().getFirst()).isEqualTo(heldByTable(one));

        for (String layout :
                List.of(
                        "pipeline.stages=4",
                        "parallel={data=2, zero.stage=2}",
                        "parallel={data=2, zero.stage=3}",
                        "parallel={data=4, zero.stage=1}")) {
            expectSame(tiny(layout).complete(), plain);
        }
    }

    /** What {@code penstock memory} says of moments in 8 bits, asked about the run with floats. */
    private static long heldByTable(Training run) {
        Function<List<String>, LoadedConfig> reader =
                more -> {
                    List<String> settings = new ArrayList<>(run.settings());
                    settings.add("optimizer.state=float32");
                    settings.addAll(more);
                    return ConfigLoader.loadWithOrigins(run.configuration(), settings);
                };
        Rates rates = Rates.nominal(reader.apply(List.of()).config().device());
        return MemoryChoices.of(reader, RunParts::proof, rates, Long.MAX_VALUE)
                .possible()
                .filter(way -> way.settings().equals(List.of(CODED)))
                .findFirst()
                .orElseThrow()
                .heldBytes();
    }

    /** Files have floats, of which each run makes the same codes again. */
    @Test
    void aRunGoesOnFromItsCheckpointOnAnyLayout() throws IOException {
        String rate = "optimizer.schedule=constant";
        Trained whole = tiny(rate).complete();
        Training half = tiny(rate, "run.steps=4", "checkpoint.every=4");
        half.complete();

        half.resume().set("run.steps=6", "checkpoint.every=6");
        half.set("parallel={data=2, zero.stage=3}").complete();
        half.set("run.steps=8", "parallel={data=1, zero.stage=0}");
        Trained ended = half.set("pipeline.stages=4").complete();

        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    @ParameterizedTest
    @ValueSource(strings = {"op=1F2", "at=optimizer"})
    void aMirrorTakesOverWithTheSameBits(String place) throws IOException {
        Trained whole = tiny().complete();

        Trained ended =
                RanksInOneJvm.complete(
                        tiny("recovery.mirror=on")
                                .set("fault=[{kill-rank=1, %s, step=3}]".formatted(place)));

        assertThat(ended.recoveries().getFirst().get("restart").asText()).isEqualTo("mirror");
        expectSame(ended, whole);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "parallel.tensor=2;device.precision=bf16",
                "fine-tune={method=lora, rank=4}",
                "parallel={data=2, zero={stage=1, offload=away}}"
            })
    void lossesStayCloseToThoseWithFloats(String layout) throws IOException {
        String[] settings = layout.split(";");
        Trained floats = tiny(settings).set("optimizer.state=float32").complete();

        Trained coded = tiny(settings).complete();

        for (int step = 0; step < 8; step++) {
            assertThat(coded.losses().get(step))
                    .isCloseTo(floats.losses().get(step), withinPercentage(1));
        }
        assertThat(coded.lossBits()).isNotEqualTo(floats.lossBits());
    }

    @Test
    void itLearnsAsWellAsWithFloats() throws IOException {
        // on every processor the bits for which the bound holds: with vectors of 512 it is 1.009 %
        String[] steps = {"run.steps=150", "evaluation.every=150", "device.vector-bits=256"};
        Trained floats = tiny(steps).set("optimizer.state=float32").complete();

        Trained coded = tiny(steps).complete();

        assertThat(floats.losses().getLast()).isLessThan(floats.losses().getFirst() / 2);
        assertThat(coded.losses().getLast())
                .isCloseTo(floats.losses().getLast(), withinPercentage(1));
    }
}
