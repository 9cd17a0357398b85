package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.launch.RanksInOneJvm;
import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whole runs whose links send deltas: of five of seven rows, which four sequences a step visit. */
class DeltasRunTest {
    @TempDir Path folder;

    private Training deltas(String name) throws IOException {
        return Training.onText(folder.resolve(name))
                .set("device.reduction-block=4", "optimizer.schedule=constant")
                .set("data.packing=padded", "data.validation-fraction=0.99")
                .set("data-plane.codec=int4", "data-plane.gradient-codec=int8")
                .set("data-plane.delta-rows=5");
    }

    /** The middle rank has both ends; deaths before a checkpoint, in a step, after a commit. */
    @Test
    void bitsAreThoseOfOneRunOverAResumeWithSlicesAndOverDeaths() throws IOException {
        String[] three = {"model.layers=3", "pipeline.stages=3"};
        Trained without = deltas("without").set(three).set("data-plane.delta-rows=0").complete();
        Trained whole = deltas("whole").set(three).complete();
        Training begun = deltas("begun").set(three);
        begun.copy().set("run.steps=7").complete();
        begun.set("schedule.kind=seq1f1b", "schedule.slices=2");
        Trained died =
                RanksInOneJvm.complete(
                        deltas("died")
                                .set(three)
                                .set(
                                        "fault=[{kill-rank=2, step=2, op=2F3}, {kill-rank=0, step=6, op=0B1}, {kill-rank=1, step=10, at=updated}]"));

        assertThat(whole.out())
                .contains("activations int4 (deltas of 5 rows), gradients int8")
                .containsPattern("sent per step +rank 2 [^(]*\\(as predicted\\)")
                .containsPattern("peak memory +rank 0 (\\S+ \\S+) \\(planned \\1\\)")
                .containsPattern("rank 1 (\\S+ \\S+) \\(planned \\1\\)")
                .containsPattern("rank 2 (\\S+ \\S+) \\(planned \\1\\)");
        assertThat(whole.lossBits().getFirst()).isEqualTo(without.lossBits().getFirst());
        assertThat(whole.lossBits()).isNotEqualTo(without.lossBits());
        assertThat(begun.resume().complete().lossBits()).isEqualTo(whole.lossBits());
        assertThat(died.recoveries()).hasSize(3);
        assertThat(died.lossBits()).isEqualTo(whole.lossBits());
    }

    @Test
    void replicasAndUnequalMicroBatchesGoOnWithWhatTheyKnew() throws IOException {
        String[] other = {"data.packing=lengths", "parallel.data=2"};
        Trained whole = deltas("whole").set(other).complete();
        Training begun = deltas("begun").set(other);
        begun.copy().set("run.steps=7").complete();

        assertThat(begun.resume().complete().lossBits()).isEqualTo(whole.lossBits());
        assertThat(whole.out()).containsPattern("rank 3 (\\S+ \\S+) \\(planned \\1\\)");
    }

    /** A mirror begins with what the checkpoint has, and is as large as planned. */
    @Test
    void aRunThatIsContinuedHasMirrorsOfWhatIsKnownAndLost() throws IOException {
        String[] three = {"pipeline.stages=3", "data-plane.error-feedback=true"};
        Trained whole = deltas("whole").set(three).complete();
        Training begun = deltas("begun").set(three).set("recovery.mirror=on");
        Trained measured = begun.copy().set("run.steps=7").complete();

        Trained died =
                RanksInOneJvm.complete(
                        begun.set(
                                        "fault=[{kill-rank=1, step=8, op=1F1}, {kill-rank=2, step=10, at=ready}]")
                                .resume());

        assertThat(measured.out())
                .containsPattern("sent per step +rank 0 [^(]*\\(as predicted\\)")
                .containsPattern("peak memory +rank 0 (\\S+ \\S+) \\(planned \\1\\)")
                .containsPattern("rank 1 (\\S+ \\S+) \\(planned \\1\\)")
                .containsPattern("rank 2 (\\S+ \\S+) \\(planned \\1\\)");
        assertThat(died.recoveries())
                .extracting(recovery -> recovery.get("restart").asText())
                .containsExactly("mirror", "mirror");
        assertThat(died.lossBits()).isEqualTo(whole.lossBits());
    }

    @Test
    void whatIsKnownNeedsRowsThatComeAgain() throws IOException {
        Trained refused = deltas("refused").set("data.packing=none").run();
        Trained divided =
                deltas("divided")
                        .set("parallel { tensor = 2, sequence = true }", "batch.micro-batches=2")
                        .run();
        Trained tooMany = deltas("many").set("data-plane.delta-rows=8").run();
        Trained unused = deltas("unused").set("run.steps=1").complete();
        Trained plain = deltas("plain").set("run.steps=2", "data-plane.codec=none").complete();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains(
                        "expected 0 where data.packing = none: its rows begin elsewhere in every epoch");
        assertThat(divided.err())
                .contains("parallel.sequence = true divides micro-batches of 2 sequences, got 5");
        assertThat(tooMany.err()).contains("expected at most the 7 rows to train on, got 8");
        assertThat(unused.out())
                .contains(
                        "note: data-plane.delta-rows = 5 has no effect: run.steps = 1 read 4 of 7 rows, and none a second time");
        assertThat(plain.out())
                .contains(
                        "note: data-plane.delta-rows = 5 has no effect: activations travel as they are");
    }
}
