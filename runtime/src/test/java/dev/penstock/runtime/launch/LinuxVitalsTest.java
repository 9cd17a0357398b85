package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.spi.VitalSigns.State;
import dev.penstock.actors.spi.VitalSigns.ThreadSigns;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LinuxVitalsTest {
    @TempDir Path proc;

    @Test
    void aProcessIsReadWithItsThreads() throws IOException {
        process(7, "S", 4711);
        thread(7, 7, "S", "100 200 3");
        thread(7, 9, "R", "400 500 6");
        thread(7, 12, "D", "700 800 9");

        VitalSigns signs = vitals().of(7, Optional.empty()).orElseThrow();

        assertThat(signs.startedAt()).isEqualTo(4711);
        assertThat(signs.state()).isEqualTo(State.ALIVE);
        assertThat(signs.threads())
                .containsExactlyInAnyOrder(
                        new ThreadSigns(7, false, 100, 200, 3),
                        new ThreadSigns(9, true, 400, 500, 6),
                        new ThreadSigns(12, true, 700, 800, 9));
    }

    @ParameterizedTest
    @CsvSource({"R, ALIVE", "D, ALIVE", "T, STOPPED", "t, STOPPED", "Z, ENDED", "X, ENDED"})
    void theStateIsThatOfTheProcess(String letter, State state) throws IOException {
        process(7, letter, 1);
        thread(7, 7, letter, "1 2 3");

        assertThat(vitals().of(7, Optional.empty()).orElseThrow().state()).isEqualTo(state);
    }

    @Test
    void aThreadThatEndsMeanwhileIsLeftOut() throws IOException {
        process(7, "S", 1);
        thread(7, 7, "S", "1 2 3");
        Files.createDirectories(proc.resolve("7/task/8"));

        assertThat(vitals().of(7, Optional.empty()).orElseThrow().threads())
                .containsExactly(new ThreadSigns(7, false, 1, 2, 3));
    }

    @Test
    void nothingIsKnownOfAProcessThatIsNotThere() {
        assertThat(vitals().of(8, Optional.empty())).isEmpty();
    }

    @Test
    void nothingIsKnownWhereTheKernelDoesNotCount() throws IOException {
        process(7, "S", 1);
        Files.createDirectories(proc.resolve("7/task/7"));
        Files.writeString(proc.resolve("7/task/7/stat"), stat(7, "S", 1));

        assertThat(vitals().of(7, Optional.empty())).isEmpty();
    }

    @Test
    void aProcessOfAnotherHostIsNotLookedFor() throws IOException {
        process(7, "S", 1);
        thread(7, 7, "S", "1 2 3");

        assertThat(vitals().of(7, Optional.of("there"))).isEmpty();
        assertThat(vitals().of(7, Optional.of("here"))).isPresent();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void thisProcessLives() {
        VitalSigns signs = LinuxVitals.ofThisHost().ofThisProcess().orElseThrow();

        assertThat(signs.state()).isEqualTo(State.ALIVE);
        assertThat(signs.threads()).anyMatch(ThreadSigns::wantsToRun);
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void aStoppedChildIsSeenToBeStopped() throws Exception {
        Process child = new ProcessBuilder("sleep", "60").start();
        try {
            assertThat(state(child)).contains(State.ALIVE);
            signal("STOP", child);
            await().until(() -> state(child).equals(Optional.of(State.STOPPED)));
            signal("CONT", child);
            await().until(() -> state(child).equals(Optional.of(State.ALIVE)));
        } finally {
            child.destroyForcibly().waitFor();
        }
        assertThat(state(child)).isEmpty();
    }

    private static Optional<State> state(Process child) {
        return LinuxVitals.ofThisHost().of(child.pid(), Optional.empty()).map(VitalSigns::state);
    }

    private static void signal(String name, Process child) throws Exception {
        var kill = new ProcessBuilder("kill", "-" + name, Long.toString(child.pid())).start();
        assertThat(kill.waitFor()).isZero();
    }

    // ---- a /proc of its own ---------------------------------------------------------------------

    private LinuxVitals vitals() {
        return new LinuxVitals(proc, "here");
    }

    private void process(long pid, String state, long started) throws IOException {
        Files.createDirectories(proc.resolve(Long.toString(pid)));
        Files.writeString(proc.resolve(pid + "/stat"), stat(pid, state, started));
    }

    private void thread(long pid, long thread, String state, String counts) throws IOException {
        Path task = Files.createDirectories(proc.resolve(pid + "/task/" + thread));
        Files.writeString(task.resolve("stat"), stat(thread, state, 1));
        Files.writeString(task.resolve("schedstat"), counts + "\n");
    }

    /** With a name that makes field numbers hard to count. */
    private static String stat(long id, String state, long started) {
        List<String> zeros = Collections.nCopies(18, "0");
        return "%d (a (b) c) %s %s %d 0 0\n".formatted(id, state, String.join(" ", zeros), started);
    }
}
