package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.Fault;
import dev.penstock.actors.fault.FaultInjector;
import dev.penstock.actors.fault.FaultPlan;
import dev.penstock.actors.fault.ProcessHarm;
import dev.penstock.actors.fault.SavePoint;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A process is killed at each point of a checkpoint's way to the disk; nothing saved is lost. */
class TornAtEveryPointTest {
    @TempDir Path root;

    @ParameterizedTest
    @EnumSource(SavePoint.class)
    void aKillLeavesAWholeCheckpointAndTheNextRunGoesOnFromIt(SavePoint point) throws Exception {
        assertThat(saveAndDie(point)).isEqualTo(ProcessHarm.KILLED);

        List<String> ignored = new ArrayList<>();
        SavedCheckpoint found = CheckpointFolders.latest(root, ignored::add).orElseThrow();
        boolean replaces = point == SavePoint.OLD_SET_ASIDE;
        boolean complete = point == SavePoint.RENAMED;
        assertThat(found.step()).isEqualTo(replaces || complete ? 200 : 100);
        assertThat(ignored.isEmpty()).as("" + ignored).isEqualTo(complete);

        try (TinyRun run = new TinyRun(2);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            directory.sweep();
            run.save(directory, 200);
        }
        assertThat(CheckpointFolders.latest(root, ignored::add).orElseThrow().step())
                .isEqualTo(200);
        assertThat(root.toFile().list()).containsExactlyInAnyOrder("step-000100", "step-000200");
    }

    private int saveAndDie(SavePoint point) throws Exception {
        Process writer =
                new ProcessBuilder(
                                ProcessHandle.current().info().command().orElseThrow(),
                                "--enable-native-access=ALL-UNNAMED",
                                "-XX:TieredStopAtLevel=1",
                                "-cp",
                                System.getProperty("java.class.path"),
                                Writer.class.getName(),
                                root.toString(),
                                point.name())
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
        assertThat(writer.waitFor(60, TimeUnit.SECONDS)).isTrue();
        return writer.exitValue();
    }

    /** Saves step 100, and dies in saving step 200. */
    static final class Writer {
        private Writer() {}

        /** Takes the folder of the checkpoints and the point. */
        public static void main(String[] arguments) {
            Path root = Path.of(arguments[0]);
            SavePoint point = SavePoint.valueOf(arguments[1]);
            var injector =
                    new FaultInjector(
                            new FaultPlan(List.of(new Fault.TearCheckpoint(200, point))),
                            (_, _) -> true,
                            ProcessHarm.WHOLE_PROCESS);
            try (TinyRun run = new TinyRun(2)) {
                try (CheckpointDirectory calm = TinyRun.directory(root, 2)) {
                    run.save(calm, 100);
                    if (point == SavePoint.OLD_SET_ASIDE) {
                        run.save(calm, 200);
                    }
                }
                try (CheckpointDirectory torn =
                        new CheckpointDirectory(
                                root,
                                new CheckpointIdentity(TinyRun.MODEL, "0123abcd", 42),
                                Retention.newest(2),
                                injector.forSaves())) {
                    run.save(torn, 200);
                }
            }
        }
    }
}
