package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole runs whose boundary tensors travel coded. */
class CodedLinksRunTest {
    private static final List<String> LOSSY = List.of("int4", "top-k");

    @TempDir Path folder;

    private Training coded(String name, String... settings) throws IOException {
        return Training.onText(folder.resolve(name))
                .set("device.reduction-block=4", "optimizer.schedule=constant")
                .set(settings);
    }

    @ParameterizedTest
    @ValueSource(strings = {"fp16", "bf16", "int8", "int4", "top-k"})
    void bytesAndMemoryAreThoseThatWerePredictedAndTheLossIsNear(String codec) throws IOException {
        Trained whole = coded("whole").complete();
        Trained coded =
                coded(codec, "data-plane.codec=" + codec, "data-plane.top-k=0.5").complete();

        assertThat(coded.out())
                .containsPattern("sent per step +rank 0 [^(]*\\(as predicted\\)")
                .containsPattern("peak memory +rank 0 (\\S+ \\S+) \\(planned \\1\\)");
        assertThat(coded.lossBits()).isNotEqualTo(whole.lossBits());
        assertThat(coded.losses().getLast())
                .isCloseTo(
                        whole.losses().getLast(), withinPercentage(LOSSY.contains(codec) ? 5 : 1));
    }

    @ParameterizedTest
    @CsvSource({"int4, int8", "top-k, top-k"})
    void ordersSlicesAndResumingDoNotChangeABit(String codec, String gradients) throws IOException {
        String[] codecs = {"data-plane.codec=" + codec, "data-plane.gradient-codec=" + gradients};
        Trained whole = coded("whole", codecs).complete();
        Training begun = coded("begun", codecs);
        begun.copy().set("run.steps=8").complete();

        assertThat(begun.resume().complete().lossBits()).isEqualTo(whole.lossBits());
        assertThat(begun.set("data-plane.codec=int8", "run.steps=13").complete().err())
                .contains(
                        "resuming with a different layout: data-plane.codec %s -> int8"
                                .formatted(codec));
        for (List<String> other :
                List.of(
                        List.of("schedule.kind=gpipe"),
                        List.of("schedule.kind=seq1f1b", "schedule.slices=2"),
                        List.of("schedule.recompute=full"),
                        List.of("schedule.kind=zb-h1"))) {
            Trained same =
                    coded("other" + other.hashCode(), codecs)
                            .set(other.toArray(String[]::new))
                            .complete();

            assertThat(same.lossBits()).as("%s", other).isEqualTo(whole.lossBits());
            assertThat(same.validationBits()).as("%s", other).isEqualTo(whole.validationBits());
        }
    }

    @Test
    void linksBeforeTheFirstCodedStageKeepTheirBits() throws IOException {
        Trained whole = coded("whole").complete();
        Trained behind =
                coded("behind", "data-plane.codec=int4", "data-plane.codec-from-stage=1")
                        .complete();
        Trained gradients =
                coded("gradients", "data-plane.gradient-codec=int4").set("run.steps=3").complete();

        assertThat(behind.lossBits()).isEqualTo(whole.lossBits()); // two stages have one link
        assertThat(behind.out())
                .contains(
                        "note: data-plane.codec = int4 has no effect: the last link begins at stage 0, data-plane.codec-from-stage = 1")
                .doesNotContain("links: ");
        assertThat(gradients.out())
                .contains("links: activations as they are, gradients int4, from stage 0 on");
        assertThat(gradients.lossBits().getFirst()).isEqualTo(whole.lossBits().getFirst());
        assertThat(gradients.lossBits().get(2)).isNotEqualTo(whole.lossBits().get(2));
    }

    @Test
    void aShareOfElementsIsToldAndNotedWhereNoneAreLeftOut() throws IOException {
        Trained largest =
                coded("largest", "data-plane.gradient-codec=top-k", "data-plane.top-k=0.25")
                        .set("run.steps=2")
                        .complete();
        Trained eight =
                coded("eight", "data-plane.codec=int8", "data-plane.top-k=0.25")
                        .set("run.steps=2")
                        .complete();
        Trained refused = coded("refused", "data-plane.top-k=0").run();

        assertThat(largest.out())
                .contains(
                        "links: activations as they are, gradients top-k of 0.25, from stage 0 on")
                .doesNotContain("no effect");
        assertThat(eight.out())
                .contains("note: data-plane.top-k = 0.25 has no effect: no codec is top-k");
        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("data-plane.top-k: expected a number, above 0 and at most 1, got 0");
    }

    @Test
    void aCodecThatDoesNotExistIsRefused() throws IOException {
        Trained refused = coded("refused", "data-plane.codec=int9").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains(
                        "data-plane.codec: expected auto, or one of none, fp16, bf16, int8, int4, top-k, got \"int9\"");
    }
}
