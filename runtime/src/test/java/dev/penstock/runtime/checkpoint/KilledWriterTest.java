package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A process that saves without pause is killed at moments drawn by chance; nothing saved is lost.
 */
class KilledWriterTest {
    @TempDir Path root;

    @Test
    void theLastPublishedCheckpointSurvivesAKill() throws Exception {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int round = 0; round < 5; round++) {
            long published = runAndKill(1 + random.nextInt(12), random.nextInt(4_000_000));

            List<String> ignored = new ArrayList<>();
            Optional<SavedCheckpoint> found = CheckpointFolders.latest(root, ignored::add);

            String what = "seed %d, round %d, ignored %s".formatted(seed, round, ignored);
            assertThat(found).as(what).isPresent();
            assertThat(found.get().step()).as(what).isBetween(published, published + 1);
            try (CheckpointReader reader = found.get().read()) {
                reader.requireState(TinyRun.MODEL);
                assertThat(reader.read("ln_f.bias", Arena.ofAuto()).orElseThrow().toFloats()[3])
                        .as(what)
                        .isEqualTo(TinyRun.element("ln_f.bias", found.get().step(), 3));
            }
        }
    }

    /** Kills the writer some nanoseconds after it said that it published so many checkpoints. */
    private long runAndKill(int checkpoints, long afterNanos) throws Exception {
        Process writer =
                new ProcessBuilder(
                                ProcessHandle.current().info().command().orElseThrow(),
                                "--enable-native-access=ALL-UNNAMED",
                                "-XX:TieredStopAtLevel=1",
                                "-cp",
                                System.getProperty("java.class.path"),
                                Writer.class.getName(),
                                root.toString())
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try (BufferedReader lines =
                new BufferedReader(
                        new InputStreamReader(writer.getInputStream(), StandardCharsets.UTF_8))) {
            String line = "";
            for (int i = 0; i < checkpoints; i++) {
                line = lines.readLine();
                assertThat(line).as("the writer ended by itself").isNotNull();
            }
            long end = System.nanoTime() + afterNanos;
            while (System.nanoTime() < end) {
                Thread.onSpinWait();
            }
            writer.toHandle().destroyForcibly(); // leaves its output readable
            assertThat(writer.waitFor(10, TimeUnit.SECONDS)).isTrue();
            // it may have published more before the kill arrived
            for (String more = lines.readLine(); more != null; more = lines.readLine()) {
                line = more;
            }
            return Long.parseLong(line);
        }
    }

    /** Saves for ever, from the step after the last one that is there. */
    static final class Writer {
        private Writer() {}

        /** Takes the folder of the checkpoints. */
        public static void main(String[] arguments) {
            Path root = Path.of(arguments[0]);
            long first =
                    CheckpointFolders.latest(root, line -> {}).map(SavedCheckpoint::step).orElse(0L)
                            + 1;
            try (TinyRun run = new TinyRun(2);
                    CheckpointDirectory directory = TinyRun.directory(root, 2)) {
                directory.sweep();
                for (long step = first; step < first + 100_000; step++) {
                    run.save(directory, step);
                    System.out.println(step);
                }
            }
        }
    }
}
