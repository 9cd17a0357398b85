package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * The process that supervises a local run dies by kill -9; its stage processes end by themselves.
 */
@EnabledOnOs(OS.LINUX)
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class KilledParentIT {
    private static final Duration SOON = Duration.ofSeconds(60);

    @TempDir Path whole;
    @TempDir Path folder;

    @Test
    void theResumedRunSaysWhatTheJournalKnewAndKeepsTheBits() throws Exception {
        Trained uninterrupted = training(whole).complete();
        Training training = training(folder).set("pipeline.processes=per-stage");

        try (ForkedTraining run = ForkedTraining.start(training).awaitSteps(70)) {
            List<ProcessHandle> family = run.family();
            run.signal("KILL");
            for (ProcessHandle each : family) {
                each.onExit().get(SOON.toSeconds(), TimeUnit.SECONDS);
            }
        }
        Trained resumed = training.option("--resume").complete();

        assertThat(resumed.lossBits()).isEqualTo(uninterrupted.lossBits());
        assertThat(resumed.validationBits()).isEqualTo(uninterrupted.validationBits());
        assertThat(resumed.err())
                .containsPattern("had been committed; (it is|they are) done again from checkpoint")
                .doesNotContain("is damaged");
        assertThat(epochsOfStarts()).containsExactly(1, 2);
    }

    private List<Integer> epochsOfStarts() {
        Path journal = folder.resolve("run").resolve(JournalFile.NAME);
        return JournalFile.read(journal).stream()
                .filter(JournalRecord.Began.class::isInstance)
                .map(record -> ((JournalRecord.Began) record).epoch())
                .toList();
    }

    private static Training training(Path folder) {
        return Training.onText(folder)
                .set("run.steps=120")
                .set("checkpoint.every=32")
                .set("evaluation.every=40");
    }
}
