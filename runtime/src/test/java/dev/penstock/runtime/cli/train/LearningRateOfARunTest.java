package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Twelve steps whose learning rates are those of a schedule, whatever happens to the run. */
class LearningRateOfARunTest {
    private static final String WSD =
            "optimizer={learning-rate=4e-3, min-learning-rate=1e-3, warmup-steps=2,"
                    + " schedule=wsd, decay-steps=6}";
    private static final double[] RATES = {
        2e-3, 4e-3, 4e-3, 4e-3, 4e-3, 4e-3, 3.5e-3, 3e-3, 2.5e-3, 2e-3, 1.5e-3, 1e-3
    };

    @TempDir Path folder;

    @Test
    void aResumedRunHasTheRatesAndTheBitsOfOneThatWasNeverInterrupted() throws IOException {
        Training training = Training.onText(folder).set(WSD);
        Trained whole = training.complete();
        List<String> bits = whole.lossBits();
        assertThat(whole.learningRates()).containsExactly(RATES, within(1e-15));

        removeCheckpointsFrom(8, whole.directory());
        Trained resumed = training.copy().resume().complete();

        assertThat(resumed.out()).contains("since step 4");
        assertThat(resumed.learningRates()).containsExactly(RATES, within(1e-15));
        assertThat(resumed.lossBits()).isEqualTo(bits);
    }

    @Test
    void theScheduleChangesWhatIsLearnedAfterTheWarmUpOnly() {
        Trained cosine = Training.onText(folder.resolve("cosine")).complete();
        Trained linear =
                Training.onText(folder.resolve("linear"))
                        .set("optimizer.schedule=linear")
                        .complete();

        // the loss of a step is that before its update: the first other rate is that of step 4
        assertThat(linear.lossBits().subList(0, 4)).isEqualTo(cosine.lossBits().subList(0, 4));
        assertThat(linear.lossBits().get(4)).isNotEqualTo(cosine.lossBits().get(4));
    }

    private static void removeCheckpointsFrom(long step, Path run) throws IOException {
        for (String name : List.of("step-000008", "step-000012")) {
            Path checkpoint = run.resolve("checkpoints").resolve(name);
            try (Stream<Path> files = Files.list(checkpoint)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(checkpoint);
        }
        assertThat(CheckpointFolders.newestOf(run, _ -> {}).orElseThrow().step()).isLessThan(step);
    }
}
