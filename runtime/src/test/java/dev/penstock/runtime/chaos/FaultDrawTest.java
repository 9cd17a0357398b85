package dev.penstock.runtime.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.FaultEntry;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.schedules.ir.Schedule;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FaultDrawTest {
    private static final int MANY = 300;

    @TempDir Path folder;

    private Path file = Path.of("");

    @BeforeEach
    void aRunInProcesses() throws IOException {
        Files.writeString(folder.resolve("text.txt"), "to be or not to be ".repeat(200));
        file = folder.resolve("run.conf");
        Files.writeString(
                file,
                """
                data.source = text.txt
                run.steps = 40
                model { context = 32, width = 32, layers = 2, heads = 2 }
                pipeline { stages = 2, processes = per-stage }
                checkpoint.every = 7
                """);
    }

    @Test
    void theSameSeedDrawsTheSameFaultsAndAnotherDrawsOthers() {
        assertThat(draw(42, 20)).isEqualTo(draw(42, 20)).isNotEqualTo(draw(43, 20)).hasSize(20);
    }

    @Test
    void allThatIsDrawnCanHappenInTheRun() {
        String drawn =
                draw(7, MANY).stream().map(FaultEntry::text).collect(Collectors.joining("\n"));

        LoadedConfig harmed =
                ConfigLoader.loadWithOrigins(file, List.of("fault=[\n" + drawn + "\n]"));

        assertThat(harmed.config().fault()).hasSize(MANY);
        RunParts.prepare(harmed.asDraft(), RunStart.fresh(), List.of()).start().close();
    }

    @Test
    void everyKindIsDrawn() {
        assertThat(draw(7, MANY).stream().map(Object::getClass).distinct())
                .containsExactlyInAnyOrder(
                        FaultEntry.KillRank.class,
                        FaultEntry.PauseRank.class,
                        FaultEntry.SlowStage.class,
                        FaultEntry.FailDisk.class,
                        FaultEntry.TearCheckpoint.class,
                        FaultEntry.DropFrames.class,
                        FaultEntry.DelayFrames.class,
                        FaultEntry.DuplicateFrames.class,
                        FaultEntry.CorruptFrames.class);
    }

    @Test
    void aRunInOneProcessIsSparedWhatItCannotSurvive() {
        RunConfig single = ConfigLoader.load(file, List.of("pipeline.processes=single"));

        assertThat(FaultKind.of(single, true))
                .containsExactly(
                        FaultKind.SHORT_PAUSE,
                        FaultKind.SLOW_STAGE,
                        FaultKind.FULL_DISK,
                        FaultKind.LOST_FRAMES,
                        FaultKind.LATE_FRAMES,
                        FaultKind.DOUBLED_FRAMES,
                        FaultKind.CORRUPT_FRAMES);
    }

    private List<FaultEntry> draw(long seed, int count) {
        LoadedConfig loaded = ConfigLoader.loadWithOrigins(file, List.of());
        RunParts parts = RunParts.prepare(loaded.asDraft(), RunStart.fresh(), List.of());
        parts.start().close();
        Schedule training = parts.schedule().training();
        List<FaultKind> all = Arrays.asList(FaultKind.values());
        return new FaultDraw(loaded.config(), training, all, seed).draw(count);
    }
}
