package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs with dropout, whole, divided, dying, and going on. */
class DropoutRunTest {
    @TempDir private Path folder;

    private Training dropping(String name) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve(name)))
                .set("run.steps=4", "evaluation.every=0", "checkpoint.every=2")
                .set("model.dropout=0.2");
    }

    @Test
    void aRunThatGoesOnHasTheBitsOfOneThatNeverStopped() throws IOException {
        Training training = dropping("whole");
        Trained whole = training.complete();
        Training resumed = dropping("resumed");
        resumed.copy().set("run.steps=2").complete();
        Trained ended = resumed.copy().resume().complete();
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        Trained plain = dropping("plain").set("model.dropout=0").complete();
        Trained further = resumed.copy().resume().set("model.dropout=0.5", "run.steps=5").run();

        assertThat(plain.lossBits()).isNotEqualTo(whole.lossBits());
        assertThat(further.exitCode()).as(further.err()).isEqualTo(ExitCode.OK);
        Path exported = folder.resolve("exported").resolve("model.safetensors");
        Cli export =
                Cli.run(
                        "checkpoint",
                        "export",
                        training.directory().toString(),
                        "--output",
                        exported.toString());
        assertThat(export.exitCode()).as(export.err()).isEqualTo(ExitCode.OK);
        assertThat(exported.resolveSibling("config.json"))
                .content()
                .contains("\"resid_pdrop\" : 0.2");
    }

    @Test
    void aDeathChangesNoBit() throws IOException {
        Trained whole = dropping("whole").complete();

        Trained ended =
                RanksInOneJvm.complete(
                        dropping("disturbed").set("fault=[{kill-rank=1, op=1F2, step=3}]"));

        assertThat(ended.recoveries()).hasSize(1);
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    @Test
    void whatIsNoShareIsOneError() throws IOException {
        Trained refused = dropping("refused").set("model.dropout=1").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("model.dropout")
                .contains("expected a number, at least 0 and below 1, got 1")
                .doesNotContain("\tat ");
    }
}
