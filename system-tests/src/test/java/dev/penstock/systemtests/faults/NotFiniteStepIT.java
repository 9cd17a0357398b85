package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.launch.AuditTrail;
import dev.penstock.systemtests.support.CalmRuns;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A NaN in an activation under the policies that do not end the run; halt is the default. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class NotFiniteStepIT {
    private static final String NAN_IN_STEP_7 = "fault=[{inject-nan=1, micro-batch=2, step=7}]";

    @TempDir Path folder;

    @Test
    void aSkippedStepIsAppliedNowhere() {
        List<String> calm = CalmRuns.onText().lossBits();
        Training training = skipping("harmed");
        AuditTrail books = AuditTrail.of(training.directory());
        books.begin();

        Trained trained = training.complete();

        assertThat(trained.lossBits()).hasSize(11).noneMatch(line -> line.startsWith("7 "));
        assertThat(trained.lossBits().subList(0, 6)).isEqualTo(calm.subList(0, 6));
        assertThat(trained.lossBits().get(6)).as("step 8").isNotEqualTo(calm.get(7));
        JsonNode recovery = onlyRecovery(trained);
        assertThat(recovery.get("restart").asText()).isEqualTo("skipped");
        assertThat(recovery.get("step").asLong()).isEqualTo(7);
        assertThat(recovery.get("cause").asText())
                .contains("step 7", "stage 1", "micro-batch 2", "h.1", "not finite");
        assertThat(trained.out()).contains("left out, not finite: [7]");
        assertThat(trained.directory().resolve("report.html"))
                .content()
                .contains("step 7 left out");
        for (int stage = 0; stage < 2; stage++) {
            expectChainWithout(7, applied(books, stage));
        }
    }

    @Test
    void anAccidentIsUndoneByARollback() {
        CalmRuns.CalmRun calm = CalmRuns.onText();

        Trained trained =
                Training.onText(folder.resolve("harmed"))
                        .set("recovery.non-finite=rollback", NAN_IN_STEP_7)
                        .complete();

        assertThat(trained.lossBits()).isEqualTo(calm.lossBits());
        assertThat(trained.validationBits()).isEqualTo(calm.validationBits());
        JsonNode recovery = onlyRecovery(trained);
        assertThat(recovery.get("restart").asText()).isEqualTo("checkpoint");
        assertThat(recovery.get("step").asLong()).isEqualTo(4);
        assertThat(recovery.get("stepsLost").asLong()).isEqualTo(2);
    }

    @Test
    void aStepThatIsNotFiniteAgainAfterARollbackEndsTheRun() {
        Trained ended = diverging("rollback");

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.err())
                .contains("step " + (ended.losses().size() + 1), "again, after the run went back")
                .contains("recovery.non-finite = skip");
        assertThat(onlyRecovery(ended).get("restart").asText()).isEqualTo("checkpoint");
    }

    @Test
    void brokenWeightsAreNotSkippedForever() {
        Trained ended = diverging("skip");

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.err()).contains("steps in a row are not left out");
        assertThat(ended.recoveries())
                .hasSize(3)
                .allMatch(recovery -> recovery.get("restart").asText().equals("skipped"));
    }

    private Training skipping(String name) {
        return Training.onText(folder.resolve(name)).set("recovery.non-finite=skip", NAN_IN_STEP_7);
    }

    private Trained diverging(String policy) {
        return Training.onText(folder)
                .set("run.steps=40", "checkpoint.every=1", "evaluation.every=0")
                .set("recovery.non-finite=" + policy, "recovery.max-restarts=3")
                .set("optimizer={learning-rate=1e30, warmup-steps=0, clip-norm=0}")
                .run();
    }

    private static JsonNode onlyRecovery(Trained trained) {
        assertThat(trained.recoveries()).hasSize(1);
        return trained.recoveries().getFirst();
    }

    private static List<AuditTrail.Applied> applied(AuditTrail books, int stage) {
        List<AuditTrail.Applied> applied = new ArrayList<>();
        for (AuditTrail.Entry entry :
                books.of(new AuditTrail.Holder(stage, RankPlace.single(stage)))) {
            if (entry instanceof AuditTrail.Applied update) {
                applied.add(update);
            }
        }
        return applied;
    }

    private static void expectChainWithout(long leftOut, List<AuditTrail.Applied> updates) {
        assertThat(updates).hasSize(11).noneMatch(update -> update.step() == leftOut);
        for (int i = 1; i < updates.size(); i++) {
            assertThat(updates.get(i).before())
                    .as("state before step %d", updates.get(i).step())
                    .isEqualTo(updates.get(i - 1).after());
        }
    }
}
