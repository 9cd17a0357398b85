package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The stand-in for stage processes, on which tests of recovery rely. */
class RanksInOneJvmTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    /** Threads of the JDK and of the waiting test. */
    private static final Set<String> OF_OTHERS =
            Set.of(
                    "CompletableFutureDelayScheduler",
                    "ForkJoinPool",
                    "Cleaner",
                    "process reaper",
                    "awaitility");

    @TempDir Path folder;

    @Test
    void aKilledProcessIsReplacedAndLeavesNoThreadBehind() {
        Training training =
                Training.onText(folder)
                        .set("run.steps=4", "evaluation.every=0")
                        .set("fault=[{kill-rank=1, op=1F2, step=2}]");
        Set<Long> before = threads().stream().map(Thread::threadId).collect(Collectors.toSet());

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).hasSize(4);
        assertThat(ended.recoveries())
                .singleElement()
                .satisfies(
                        recovery ->
                                assertThat(recovery.get("cause").asText())
                                        .contains("rank 1", "died", "exit code 137 (signal 9)"));
        await().atMost(LIMIT)
                .untilAsserted(
                        () ->
                                assertThat(threads())
                                        .filteredOn(thread -> !before.contains(thread.threadId()))
                                        .extracting(Thread::getName)
                                        .noneMatch(RanksInOneJvmTest::isOurs));
    }

    @Test
    void aResumedRunContinuesFromItsCheckpoint() {
        Training.onText(folder).set("run.steps=4").complete();
        Training training =
                Training.onText(folder)
                        .set("run.steps=6", "fault=[{kill-rank=0, op=0F1, step=6}]")
                        .resume();

        Trained ended = RanksInOneJvm.complete(training);

        assertThat(ended.lossBits()).hasSize(6);
        assertThat(ended.recoveries()).hasSize(1);
    }

    @Test
    void aRunThatFailsSaysWhy() {
        Training training =
                Training.onText(folder)
                        .set("recovery.enabled=off", "fault=[{kill-rank=1, op=1F2, step=2}]");

        Trained ended = RanksInOneJvm.run(training);

        assertThat(ended.exitCode()).isEqualTo(ExitCode.FAILURE);
        assertThat(ended.err()).contains("rank 1", "died");
    }

    private static Set<Thread> threads() {
        return Thread.getAllStackTraces().keySet();
    }

    private static boolean isOurs(String name) {
        return OF_OTHERS.stream().noneMatch(name::contains);
    }
}
