package dev.penstock.systemtests.golden;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run that was saved under one layout resumes under another. */
class OtherLayoutIT {
    private static final String ONE = "pipeline={stages=1, chunks=1}";
    private static final String TWO = "pipeline={stages=2, chunks=1}";
    private static final String INTERLEAVED = "pipeline={stages=2, chunks=2}";
    private static final String FOUR = "pipeline={stages=4, chunks=1}";

    @TempDir Path folder;

    @Test
    void aRunResumesUnderAnotherLayoutWithTheBitsOfAnUninterruptedRun() throws IOException {
        Trained whole = training("whole", ONE).complete();
        training("moved", ONE).complete();

        for (String layout : List.of(TWO, INTERLEAVED, FOUR, ONE)) {
            loseCheckpointsAfter(4);
            Trained resumed = training("moved", layout).resume().complete();

            assertThat(resumed.lossBits()).as(layout).isEqualTo(whole.lossBits());
            assertThat(resumed.validationBits()).as(layout).isEqualTo(whole.validationBits());
        }
        loseCheckpointsAfter(4);
        assertThat(training("moved", TWO).set("schedule.kind=gpipe").resume().complete().err())
                .contains(
                        "resuming with a different layout: pipeline.stages 1 -> 2,"
                                + " schedule.kind 1f1b -> gpipe");
    }

    /**
     * Resumes from one of the previous layouts, so that every layout reads what every other wrote.
     */
    @Test
    void everyLayoutReadsWhatAnotherWrote() throws IOException {
        Trained whole = training("whole", ONE).complete();
        training("moved", INTERLEAVED).complete();

        for (String layout : List.of(ONE, FOUR, TWO)) {
            loseCheckpointsAfter(8);
            Trained resumed = training("moved", layout).resume().complete();

            assertThat(resumed.lossBits()).as(layout).isEqualTo(whole.lossBits());
            loseCheckpointsAfter(4);
            assertThat(training("moved", layout).resume().complete().lossBits())
                    .isEqualTo(whole.lossBits());
        }
    }

    @Test
    void anotherTokenizerIsRefused() {
        training("moved", ONE).set("model.vocabulary=50257").set("run.steps=4").complete();

        Trained refused =
                training("moved", TWO)
                        .set("model.vocabulary=50257", "data.tokenizer=gpt2", "run.steps=4")
                        .resume()
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("data.tokenizer", "bytes", "gpt2");
    }

    private Training training(String name, String layout) {
        return Training.onText(folder.resolve(name))
                .set("model.layers=4", "evaluation.batches=1", layout)
                .set("schedule.kind=" + (layout.equals(INTERLEAVED) ? "interleaved-1f1b" : "1f1b"));
    }

    private void loseCheckpointsAfter(long step) throws IOException {
        Path root = folder.resolve("moved/run/checkpoints");
        for (long later = step + 4; later <= 12; later += 4) {
            Path lost = root.resolve("step-%06d".formatted(later));
            if (Files.exists(lost)) {
                try (Stream<Path> files = Files.walk(lost)) {
                    for (Path each : files.sorted(Comparator.reverseOrder()).toList()) {
                        Files.delete(each);
                    }
                }
            }
        }
    }
}
