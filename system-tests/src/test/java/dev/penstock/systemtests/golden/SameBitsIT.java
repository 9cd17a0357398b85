package dev.penstock.systemtests.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.launch.RanksInOneJvm;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.TinyFamily;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The results of a configuration and seed do not depend on the layout of the run. */
class SameBitsIT {
    private static final String[] TWO_STAGES = {
        "run.steps=10", "device.reduction-block=4", "pipeline.stages=2"
    };

    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"auto", "java"})
    void ordersWithBackwardsInTheSameSequenceGiveTheSameLosses(String gemm) {
        List<String> bits = bits("device.gemm=" + gemm);

        for (String layout :
                List.of(
                        "run.name=again",
                        "schedule.kind=gpipe",
                        "schedule={kind=seq1f1b, slices=2}",
                        "schedule={kind=gpipe, recompute=full}",
                        "schedule={kind=gpipe, recompute=blocks}",
                        "schedule={kind=seq1f1b, slices=2, recompute=full}",
                        "schedule={kind=seq1f1b, slices=1}",
                        "pipeline.stages=1",
                        "pipeline.stages=3",
                        "pipeline.partition=[2,0]",
                        "pipeline.partition=[0,2]",
                        "device.threads=2",
                        "data-plane={term-length=1 MiB, crc=true, poller=sleeping}",
                        "data-plane={term-length=64 KiB, mtu=1024, in-flight=4}")) {
            assertThat(losses(layout, "device.gemm=" + gemm, layout)).as(layout).isEqualTo(bits);
        }
    }

    /** Families whose backwards, or whose parts for the weights, have the sequence of 1F1B. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "interleaved-1f1b",
                "gis",
                "zb-h1",
                "zb-h2",
                "zb-1p",
                "zb-2p",
                "interleaved-zb",
                "zb-v",
                "v-half",
                "v-min",
                "seq1f1b-interleaved",
                "terapipe-1f1b"
            })
    void familiesOf1F1BsClassGiveItsLosses(String kind) {
        ScheduleKind known = Generators.kind(kind);
        String chunks = known.chunks() == ScheduleKind.Chunks.ONE ? "1" : "2";
        String slices = known.sliced() ? "2" : "1";

        List<String> family =
                losses(
                        kind,
                        "schedule={kind=" + kind + ", slices=" + slices + "}",
                        "pipeline.chunks=" + chunks);

        assertThat(family).isEqualTo(bits());
    }

    /**
     * The activations are kept from the part of a backward for the input, which computes them, to
     * the part for the weights.
     */
    @Test
    void blocksThatRunAgainDoNotChangeABitWhereBackwardsAreSplit() {
        List<String> bits = bits();

        assertThat(losses("blocks", "schedule={kind=zb-v, recompute=blocks}", "pipeline.chunks=2"))
                .isEqualTo(bits);
        assertThat(losses("one", "schedule={kind=zb-h1, recompute=[1]}", "parallel.data=2"))
                .isEqualTo(bits("parallel.data=2"));
    }

    /**
     * Tests every kind of order, with one stage on a rank and with two where the kind supports
     * that.
     */
    @ParameterizedTest
    @MethodSource("allKinds")
    void mirrorsDoNotChangeABit(String name) {
        ScheduleKind kind = Generators.kind(name);
        String chunks = kind.chunks() == ScheduleKind.Chunks.ONE ? "1" : "2";
        String slices = kind.sliced() ? "2" : "1";
        String[] order = {
            "schedule={kind=" + name + ", slices=" + slices + "}", "pipeline.chunks=" + chunks
        };

        List<String> plain = bits(order);
        List<String> mirrored =
                Training.golden(folder.resolve("mirrored"), true)
                        .set(TWO_STAGES)
                        .set(order)
                        .set("recovery.mirror=on")
                        .complete()
                        .lossBits();

        assertThat(mirrored).isEqualTo(plain);
    }

    static Stream<String> allKinds() {
        return Generators.kinds().stream();
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "java"})
    void ordersWithBackwardsInReverseGiveTheSameLosses(String gemm) {
        List<String> bits = bits("device.gemm=" + gemm, "schedule.kind=terapipe");

        for (String layout :
                List.of(
                        "schedule={kind=gpipe, backward=reverse}",
                        "schedule={kind=terapipe, slices=1}",
                        "schedule={kind=terapipe, slices=2}",
                        "schedule={kind=terapipe, slice-lengths=[4,12]}")) {
            for (String stages : List.of("pipeline.stages=1", "pipeline.stages=3")) {
                assertThat(losses(layout + stages, "device.gemm=" + gemm, layout, stages))
                        .as(layout + " " + stages)
                        .isEqualTo(bits);
            }
        }
    }

    @Test
    void untiedModelsGiveTheSameBitsInEveryLayout() {
        List<String> bits = CalmRuns.golden(false).lossBits();

        for (String layout :
                List.of(
                        "pipeline.stages=2",
                        "pipeline.stages=3",
                        "schedule={kind=seq1f1b, slices=2}")) {
            Training training = Training.golden(folder.resolve(layout), false).set(layout);
            assertThat(training.complete().lossBits()).as(layout).isEqualTo(bits);
        }
    }

    @Test
    void inBf16LossesDoNotDependOnSlicesOrStages() {
        List<String> bits = bits("device.precision=bf16");

        for (String layout :
                List.of(
                        "pipeline.stages=1",
                        "pipeline.stages=3",
                        "schedule={kind=seq1f1b, slices=2}")) {
            assertThat(losses(layout, "device.precision=bf16", layout)).as(layout).isEqualTo(bits);
        }
    }

    @Test
    void validationLossesHaveTheSameBitsInEveryLayout() {
        CalmRuns.CalmRun base = CalmRuns.onText();

        assertThat(base.validationBits()).hasSize(5);
        for (String layout :
                List.of(
                        "run.name=again",
                        "pipeline.stages=1",
                        "pipeline.stages=3",
                        "schedule.kind=gpipe",
                        "schedule={kind=seq1f1b, slices=2}",
                        "device.threads=2")) {
            Trained trained = onText(layout, layout);
            assertThat(trained.lossBits()).as(layout).isEqualTo(base.lossBits());
            assertThat(trained.validationBits()).as(layout).isEqualTo(base.validationBits());
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {4, 8})
    void aRunResumedFromACheckpointRepeatsTheUninterruptedRun(long step) throws IOException {
        Training training = Training.onText(folder);
        Trained whole = training.complete();
        for (long later = step + 4; later <= 12; later += 4) {
            delete(
                    CheckpointFolders.of(
                            whole.directory().resolve(CheckpointFolders.FOLDER), later));
        }
        List<String> losses = whole.lossBits();
        List<String> validation = whole.validationBits();

        Trained resumed = training.option("--resume").complete();

        assertThat(resumed.err()).doesNotContain("ignored");
        assertThat(resumed.lossBits()).isEqualTo(losses);
        assertThat(resumed.validationBits()).isEqualTo(validation);
    }

    @Test
    void aCheckpointOfOneLayoutResumesUnderAnother() throws IOException {
        Training training = Training.onText(folder);
        Trained whole = training.complete();
        delete(CheckpointFolders.of(whole.directory().resolve(CheckpointFolders.FOLDER), 12));
        delete(CheckpointFolders.of(whole.directory().resolve(CheckpointFolders.FOLDER), 8));
        List<String> losses = whole.lossBits();
        List<String> validation = whole.validationBits();

        Trained resumed =
                training.set("pipeline.stages=3", "schedule={kind=seq1f1b, slices=2}")
                        .option("--resume")
                        .complete();

        assertThat(resumed.lossBits()).isEqualTo(losses);
        assertThat(resumed.validationBits()).isEqualTo(validation);
    }

    /** From the middle, in other stages, slices and threads, and with mirrors. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "mistral", "qwen2", "qwen3", "gpt3", "retnet", "retnet-mixed"})
    void everyFamilyResumesUnderAnotherLayout(String family) throws IOException {
        Training training =
                Training.onText(folder)
                        .set("model={" + TinyFamily.of(family) + "}", "run.steps=4")
                        .set("checkpoint.every=2", "evaluation.every=2");
        Trained whole = training.complete();
        delete(CheckpointFolders.of(whole.directory().resolve(CheckpointFolders.FOLDER), 4));
        List<String> losses = whole.lossBits();
        List<String> validation = whole.validationBits();

        Trained resumed =
                training.set("pipeline.stages=3", "schedule={kind=seq1f1b, slices=2}")
                        .set("device.threads=2", "recovery.mirror=on")
                        .option("--resume")
                        .complete();

        assertThat(resumed.lossBits()).isEqualTo(losses);
        assertThat(resumed.validationBits()).isEqualTo(validation);
    }

    /** What is hidden depends on neither layout nor beginning. */
    @ParameterizedTest
    @ValueSource(strings = {"bert", "megatron-bert"})
    void aModelThatSeesBothWaysResumesUnderAnotherLayout(String family) throws IOException {
        Training training =
                Training.onText(folder)
                        .set("model={" + TinyFamily.of(family) + "}", "run.steps=4")
                        .set("data.loss=masked", "checkpoint.every=2", "evaluation.every=2");
        Trained whole = training.complete();
        delete(CheckpointFolders.of(whole.directory().resolve(CheckpointFolders.FOLDER), 4));
        List<String> losses = whole.lossBits();
        List<String> validation = whole.validationBits();

        Trained resumed =
                training.set("pipeline.stages=3", "schedule={kind=zb-h1}")
                        .set("device.threads=2", "recovery.mirror=on")
                        .option("--resume")
                        .complete();

        assertThat(resumed.lossBits()).isEqualTo(losses);
        assertThat(resumed.validationBits()).isEqualTo(validation);
    }

    /** As if each stage had its own process; {@code FourProcessesIT} shows it of real ones. */
    @Test
    void oneProcessPerStageGivesTheBitsOfOneProcess() {
        CalmRuns.CalmRun single = CalmRuns.onText();

        Trained many = RanksInOneJvm.complete(Training.onText(folder.resolve("many")));

        assertThat(many.lossBits()).isEqualTo(single.lossBits());
        assertThat(many.validationBits()).isEqualTo(single.validationBits());
    }

    @Test
    void balancedSlicesGiveTheBitsOfWholeSequencesWhereTheyEndOnTheGrid() {
        String[] shape = {"run.steps=4", "model.context=128", "checkpoint.every=0"};
        String balanced = "schedule={kind=seq1f1b, slices=2, slice-lengths=balanced}";
        Trained whole = onText("whole", with(shape, "device.reduction-block=8"));

        Trained onGrid = onText("on-grid", with(shape, "device.reduction-block=8", balanced));
        Trained offGrid = onText("off-grid", with(shape, "device.reduction-block=16", balanced));

        assertThat(onGrid.out()).contains("token slices: [72, 56]").doesNotContain("note:");
        assertThat(onGrid.lossBits()).isEqualTo(whole.lossBits());
        assertThat(offGrid.out()).contains("end at token [72] are off the blocks of 16");
        for (int step = 0; step < 4; step++) {
            assertThat(offGrid.losses().get(step))
                    .isCloseTo(whole.losses().get(step), within(1e-4));
        }
    }

    private static String[] with(String[] settings, String... more) {
        return Stream.concat(Stream.of(settings), Stream.of(more)).toArray(String[]::new);
    }

    @Test
    void mirrorsInOtherProcessesDoNotChangeABit() {
        CalmRuns.CalmRun plain = CalmRuns.onText("pipeline.stages=3");

        Trained mirrored =
                RanksInOneJvm.complete(
                        Training.onText(folder.resolve("mirrored"))
                                .set("pipeline.stages=3", "recovery.mirror=on"));

        assertThat(mirrored.lossBits()).isEqualTo(plain.lossBits());
        assertThat(mirrored.validationBits()).isEqualTo(plain.validationBits());
    }

    /** Between ranks of one process, and between ranks that share nothing. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void tensorsOverUdpGiveTheBitsOfSharedMemory(boolean shared) {
        List<String> bits = bits();

        Training udp =
                golden(
                        "udp",
                        "data-plane={term-length=1 MiB, transport=udp, udp-term-length=1 MiB}");
        List<String> overUdp = (shared ? udp.complete() : RanksInOneJvm.complete(udp)).lossBits();
        List<String> overEthernet =
                losses(
                        "ethernet",
                        "schedule={kind=seq1f1b, slices=2}",
                        "data-plane={transport=udp, udp-mtu=1408, udp-term-length=64 KiB}");

        assertThat(overUdp).isEqualTo(bits);
        assertThat(overEthernet).isEqualTo(bits);
    }

    /**
     * The losses of the tied golden model on a grid of four tokens, in two stages unless the
     * settings differ.
     */
    private List<String> losses(String name, String... settings) {
        return golden(name, settings).complete().lossBits();
    }

    private Training golden(String name, String... settings) {
        return Training.golden(folder.resolve(name), true).set(TWO_STAGES).set(settings);
    }

    /** The same as {@link #losses}, trained only once for all tests that compare with it. */
    private static List<String> bits(String... settings) {
        return CalmRuns.golden(true, with(TWO_STAGES, settings)).lossBits();
    }

    private Trained onText(String name, String... settings) {
        return Training.onText(folder.resolve(name)).set(settings).complete();
    }

    private static void delete(Path checkpoint) throws IOException {
        try (Stream<Path> files = Files.list(checkpoint)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(checkpoint);
    }
}
