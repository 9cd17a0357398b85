package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.RunningTraining;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Runs that swap, killed while an update writes their files. */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
class SwappedRunsIT {
    private static final int STEPS = 20;
    private static final int ATTEMPTS = 5;
    private static final Duration SOON = Duration.ofSeconds(30);

    private static List<String> truth = List.of();

    @TempDir Path folder;

    @BeforeAll
    static void runInMemory(@TempDir Path whole) {
        truth = breadthFirst(whole).complete().lossBits();
        assertThat(truth).hasSize(STEPS);
    }

    /** The killed process may not have written the metrics of the step that it was in. */
    @Test
    void aRunThatWasKilledWithinAnUpdateGoesOnFromItsFilesWithTheSameBits() throws Exception {
        Training training = swapping();
        killWithinAnUpdate(training);

        Trained resumed = training.copy().option("--resume").complete();

        assertThat(resumed.err()).contains("which device.swap has: nothing is done again");
        assertThat(resumed.lossBits()).hasSizeGreaterThanOrEqualTo(STEPS - ATTEMPTS);
        assertThat(truth).containsAll(resumed.lossBits());
        assertThat(resumed.lossBits().getLast()).isEqualTo(truth.getLast());
        assertThat(resumed.err()).contains("device.swap: removed");
        assertThat(files()).isEmpty();
    }

    @Test
    void whereAFileIsTornTheNewestCheckpointTakesThePlaceOfAll() throws Exception {
        Training training = swapping();
        try (RunningTraining run = RunningTraining.host(training).awaitSteps(5)) {
            run.interrupt();
            run.awaitEnd(SOON);
        }
        Path file = files().stream().filter(f -> ("" + f).endsWith(".state")).toList().getLast();
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(new byte[] {77, 78}), channel.size() - 9);
        }

        Trained resumed = training.copy().option("--resume").complete();

        assertThat(resumed.err()).contains(file.getFileName() + " is torn");
        assertThat(resumed.lossBits()).isEqualTo(truth);
        assertThat(resumed.directory().resolve("profile.txt"))
                .content()
                .containsPattern("\\ngather 1 [1-9]\\d*\\n")
                .containsPattern("\\nupdate [1-9]\\d*\\n");
    }

    /** A kill that comes just behind an update is made good, and another one sent. */
    private void killWithinAnUpdate(Training training) throws Exception {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            Training next = attempt == 0 ? training : training.copy().option("--resume");
            int done = Trained.steps(training.directory());
            try (RunningTraining run = RunningTraining.start(next).awaitSteps(done + 2)) {
                while (unfinished().isEmpty()) {
                    Thread.onSpinWait();
                }
                run.family().forEach(ProcessHandle::destroyForcibly);
                run.awaitEnd(SOON);
            }
            if (!unfinished().isEmpty()) {
                return;
            }
        }
        throw new AssertionError("no kill came within an update");
    }

    /** Files of an update that would have taken the place of others. */
    private List<Path> unfinished() throws IOException {
        return files().stream().filter(f -> ("" + f).endsWith(".next")).toList();
    }

    private List<Path> files() throws IOException {
        Path swap = folder.resolve("swap");
        if (!Files.isDirectory(swap)) {
            return List.of();
        }
        try (Stream<Path> there = Files.walk(swap)) {
            return there.filter(Files::isRegularFile).sorted().toList();
        } catch (UncheckedIOException e) {
            return List.of(); // one was renamed meanwhile
        }
    }

    private Training swapping() {
        return breadthFirst(folder).set("device.swap=\"" + folder.resolve("swap") + "\"");
    }

    private static Training breadthFirst(Path folder) {
        return Training.onText(folder)
                .set(
                        "run.steps=" + STEPS,
                        "pipeline={ stages=1, chunks=4 }",
                        "schedule.kind=breadth-first",
                        "evaluation.every=0",
                        "checkpoint.every=3")
                .set(ForkedCli.PLAIN_CODE);
    }
}
