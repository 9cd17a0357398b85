package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.launch.RanksInOneJvm;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whole runs that keep what the encoding of gradients loses. */
class ErrorFeedbackRunTest {
    private static final String[] FEEDBACK = {
        "data-plane.codec=int8", "data-plane.gradient-codec=top-k", "data-plane.error-feedback=true"
    };

    @TempDir Path folder;

    private Training coded(String name, String... settings) throws IOException {
        return Training.onText(folder.resolve(name))
                .set("device.reduction-block=4", "optimizer.schedule=constant")
                .set(settings);
    }

    @ParameterizedTest
    @CsvSource({"int8, top-k", "none, int4"})
    void whatGradientsLoseIsKeptWhateverTheOrderAndOverAResume(String codec, String gradients)
            throws IOException {
        String[] codecs = {
            "data-plane.codec=" + codec,
            "data-plane.gradient-codec=" + gradients,
            "data-plane.error-feedback=true"
        };
        Trained without =
                coded("without", codecs).set("data-plane.error-feedback=false").complete();
        Trained whole = coded("whole", codecs).complete();
        Training begun = coded("begun", codecs);
        begun.copy().set("run.steps=7").complete();

        assertThat(whole.out())
                .contains(", from stage 0 on, with error feedback")
                .containsPattern("sent per step +rank 0 [^(]*\\(as predicted\\)")
                .containsPattern("peak memory +rank 0 (\\S+ \\S+) \\(planned \\1\\)")
                .containsPattern("rank 1 (\\S+ \\S+) \\(planned \\1\\)");
        assertThat(whole.lossBits().subList(0, 2)).isEqualTo(without.lossBits().subList(0, 2));
        assertThat(whole.lossBits()).isNotEqualTo(without.lossBits());
        assertThat(begun.resume().complete().lossBits()).isEqualTo(whole.lossBits());
        for (List<String> other :
                List.of(
                        List.of("schedule.kind=gpipe"),
                        List.of("schedule.kind=seq1f1b", "schedule.slices=2"),
                        List.of("schedule.kind=zb-h1"))) {
            Trained same =
                    coded("other" + other.hashCode(), codecs)
                            .set(other.toArray(String[]::new))
                            .complete();

            assertThat(same.lossBits()).as("%s", other).isEqualTo(whole.lossBits());
        }
        Training sliced = coded("sliced", codecs);
        sliced.copy().set("run.steps=7", "schedule.kind=seq1f1b", "schedule.slices=2").complete();
        assertThat(sliced.resume().complete().lossBits()).isEqualTo(whole.lossBits());
    }

    @Test
    void replicasKeepWhatTheyLoseEachForItself() throws IOException {
        Trained one = coded("one", FEEDBACK).complete();
        Trained two = coded("two", FEEDBACK).set("parallel.data=2").complete();
        Training begun = coded("begun", FEEDBACK).set("parallel.data=2");
        begun.copy().set("run.steps=7").complete();
        Training other = coded("other", FEEDBACK).set("parallel.data=2");
        other.copy().set("run.steps=7", "parallel.data=1").complete();

        assertThat(begun.resume().complete().lossBits()).isEqualTo(two.lossBits());
        assertThat(two.losses().getLast()) // sums in another order
                .isCloseTo(one.losses().getLast(), withinPercentage(0.01));
        assertThat(other.resume().complete().losses().getLast())
                .isCloseTo(one.losses().getLast(), withinPercentage(0.01));
    }

    @Test
    void whatGradientsLoseIsNotKeptOfUnequalMicroBatches() throws IOException {
        Trained refused =
                coded("refused", "data-plane.codec=int8", "data-plane.error-feedback=true")
                        .set("data.packing=lengths")
                        .run();
        Trained unused = coded("unused", "data-plane.error-feedback=true").set("run.steps=1").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("expected false where data.packing = lengths, got true");
        assertThat(unused.out())
                .contains(
                        "note: data-plane.error-feedback = true has no effect: gradients travel as they are");
    }

    /** Deaths before the first checkpoint, inside a step after one and after a commit. */
    @Test
    void deathsAndAnAccidentDoNotChangeABit() throws IOException {
        Trained calm = coded("calm", FEEDBACK).complete();
        Trained died =
                RanksInOneJvm.complete(
                        coded("died", FEEDBACK)
                                .set(
                                        "fault=[{kill-rank=1, step=2, op=1B3}, {kill-rank=0, step=6, op=0B1}, {kill-rank=1, step=10, at=updated}]"));
        Trained accident =
                coded("accident", FEEDBACK)
                        .set(
                                "recovery.non-finite=rollback",
                                "fault=[{inject-nan=1, micro-batch=2, step=7}]")
                        .complete();

        assertThat(died.recoveries()).hasSize(3);
        assertThat(died.lossBits()).isEqualTo(calm.lossBits());
        assertThat(accident.recoveries()).hasSize(1);
        assertThat(accident.lossBits()).isEqualTo(calm.lossBits());
    }

    @Test
    void aStepThatIsLeftOutLeavesNothingInWhatIsKept() throws IOException {
        Trained calm = coded("calm", FEEDBACK).complete();
        Trained skipped =
                coded("skipped", FEEDBACK)
                        .set(
                                "recovery.non-finite=skip",
                                "fault=[{inject-nan=1, micro-batch=2, step=7}]")
                        .complete();

        assertThat(skipped.lossBits()).hasSize(11);
        assertThat(skipped.losses().getLast())
                .isCloseTo(calm.losses().getLast(), withinPercentage(5));
    }
}
