package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What an earlier build left behind in a run's directory is of use to this one. */
class RunOfAnEarlierBuildTest {
    @TempDir Path folder;
    private Path run;

    @BeforeEach
    void copyRecorded() throws Exception {
        Path recorded =
                Path.of(
                        Objects.requireNonNull(
                                        RunOfAnEarlierBuildTest.class.getResource("/recorded/run"))
                                .toURI());
        run = folder.resolve("run");
        try (Stream<Path> files = Files.walk(recorded)) {
            for (Path file : files.toList()) {
                Files.copy(file, run.resolve(recorded.relativize(file).toString()));
            }
        }
    }

    @Test
    void itsJournalIsRead() {
        JournalledRun journalled =
                JournalledRun.of(JournalFile.read(run.resolve(JournalFile.NAME))).orElseThrow();

        assertThat(journalled.began().ranks()).isEqualTo(2);
        assertThat(journalled.epoch()).isEqualTo(1);
        assertThat(journalled.completed()).isEqualTo(4);
        assertThat(journalled.published()).isEqualTo(4);
        assertThat(journalled.placed()).containsOnlyKeys(0, 1);
        assertThat(journalled.ending()).contains(new JournalRecord.Ended(4));
    }

    @Test
    void itsCheckpointIsWhole() {
        List<String> warnings = new ArrayList<>();

        SavedCheckpoint saved = CheckpointFolders.newestOf(run, warnings::add).orElseThrow();

        assertThat(warnings).isEmpty();
        assertThat(saved.step()).isEqualTo(4);
        assertThat(saved.verify()).isEmpty();
        assertThat(saved.manifest().shards()).hasSize(2);
    }

    @Test
    void itGoesOn() throws IOException {
        Cli resumed =
                Cli.run(
                        "train",
                        run.resolve("tiny.conf").toString(),
                        "--run-dir",
                        run.toString(),
                        "--resume",
                        "--set",
                        "data.source=\"%s\"".formatted(Training.golden("tokens.safetensors")),
                        "--set",
                        "run.steps=6");

        assertThat(resumed.err()).doesNotContain("damaged");
        assertThat(resumed.exitCode()).as(resumed.err()).isEqualTo(ExitCode.OK);
        assertThat(Trained.steps(run)).as("four of them were here").isEqualTo(6);
    }
}
