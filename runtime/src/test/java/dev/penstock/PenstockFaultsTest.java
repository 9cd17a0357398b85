package dev.penstock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a program is told when something is wrong: slow listeners, damage, interrupts, nulls. */
class PenstockFaultsTest {
    private static final String TINY =
            """
            run { steps = 8, seed = 7 }
            model { context = 16, width = 32, layers = 2, heads = 2 }
            batch { sequences = 4, micro-batches = 2 }
            pipeline.stages = 2
            device { threads = 1, reduction-block = 8 }
            evaluation { every = 4, batches = 2 }
            checkpoint { every = 4, retain = 3 }
            data-plane.term-length = 1 MiB
            """;

    @TempDir Path folder;

    @AfterEach
    void leavesNoInterruptBehind() {
        boolean _ = Thread.interrupted();
    }

    private Penstock onText() throws IOException {
        return Penstock.ofText(TINY)
                .with(
                        "data.source",
                        Files.writeString(
                                folder.resolve("text.txt"),
                                dev.penstock.runtime.cli.Training.text(20_000)));
    }

    /** Numbered tokens below a limit, by a name. */
    private record Counting(String identity, long size, int limit) implements TokenSource {
        @Override
        public void read(long first, int[] target, int offset, int count) {
            for (int i = 0; i < count; i++) {
                target[offset + i] = (int) ((first + i) * 7 % limit);
            }
        }
    }

    private static Counting counting(String identity) {
        return new Counting(identity, 10_000, 250);
    }

    // ---- listeners ------------------------------------------------------------------------------

    @Test
    void theEndIsTheRunsOwnHoweverSlowAListenerIs() throws IOException {
        Path run = folder.resolve("run");
        List<Long> heard = new ArrayList<>();
        var slow =
                new TrainingListener() {
                    @Override
                    public void onStep(TrainingStep step) {
                        if (heard.isEmpty()) { // until the run is over and reported
                            await().atMost(Duration.ofMinutes(2))
                                    .until(() -> Files.exists(run.resolve("report.html")));
                        }
                        heard.add(step.step());
                    }
                };

        TrainingEnd end = onText().in(run).train(slow);

        assertThat(end.loss()).hasValue(new Trained(run, 0, "", "").losses().getLast());
        assertThat(end.heldOutLoss()).isPresent();
        assertThat(heard).containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L);
    }

    @Test
    void anErrorOfAListenerStopsTheTrainingAsAnExceptionDoes() throws IOException {
        Penstock described = onText().with("run.steps", 2_000).in(folder.resolve("run"));
        var wrong =
                new TrainingListener() {
                    @Override
                    public void onStep(TrainingStep step) {
                        throw new AssertionError("a wrong step");
                    }
                };

        assertThatThrownBy(() -> described.train(wrong))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("a listener threw")
                .hasMessageContaining("a wrong step")
                .hasCauseInstanceOf(AssertionError.class);
    }

    // ---- damage ---------------------------------------------------------------------------------

    @Test
    void eachDamagedCheckpointIsNamedWithItsFile() throws IOException {
        Path run = folder.resolve("run");
        Penstock described = onText().in(run);
        described.train();
        List<Path> flipped = flipABitInEveryFile(run.resolve("checkpoints"));

        String[] named =
                flipped.stream()
                        .map(file -> run.resolve("checkpoints").relativize(file).toString())
                        .toArray(String[]::new);
        assertThat(named).hasSizeGreaterThan(2);
        assertThatThrownBy(() -> Penstock.open(run))
                .isInstanceOf(PenstockException.class)
                .hasMessageContainingAll(named)
                .hasMessageContaining("SHA-256")
                .hasMessageNotContaining("no checkpoint here");
        assertThatThrownBy(() -> Penstock.evaluate(run))
                .isInstanceOf(PenstockException.class)
                .hasMessageContainingAll(named);
        assertThatThrownBy(() -> described.resume())
                .isInstanceOf(PenstockException.class)
                .hasMessageContainingAll(named);
        Cli typed = Cli.run("generate", run + "", "--prompt", "a");
        assertThat(typed.exitCode()).isEqualTo(2);
        assertThat(typed.err()).contains(named);
    }

    private static List<Path> flipABitInEveryFile(Path checkpoints) throws IOException {
        List<Path> all;
        try (Stream<Path> files = Files.walk(checkpoints)) {
            all = files.filter(file -> file.toString().endsWith(".safetensors")).toList();
        }
        for (Path file : all) {
            byte[] bytes = Files.readAllBytes(file);
            bytes[bytes.length - 1] ^= 1;
            Files.write(file, bytes);
        }
        return all;
    }

    // ---- interrupts -----------------------------------------------------------------------------

    @Test
    void anEarlierInterruptIsToldAsOneAndKept() throws IOException {
        Path run = folder.resolve("run");
        Penstock described = onText().in(run);
        described.train();
        Penstock other = onText().in(folder.resolve("other"));

        try (Model model = Penstock.open(run)) {
            assertInterrupted(other::check);
            assertInterrupted(() -> other.train());
            assertInterrupted(() -> described.resume());
            assertInterrupted(() -> Penstock.evaluate(run));
            assertInterrupted(() -> Penstock.open(run).close());
            assertInterrupted(() -> model.generate("a", Generation.greedy(1)));
            assertInterrupted(() -> model.evaluate(folder.resolve("text.txt")));
            assertInterrupted(() -> model.serve(0).close());
        }
        assertThat(folder.resolve("other")).doesNotExist();
    }

    private static void assertInterrupted(ThrowingCallable call) {
        Thread.currentThread().interrupt();
        try {
            assertThatThrownBy(call)
                    .isInstanceOf(PenstockException.class)
                    .hasMessageContaining("interrupted");
            assertThat(Thread.currentThread().isInterrupted()).isTrue();
        } finally {
            boolean _ = Thread.interrupted();
        }
    }

    // ---- tokens of one's own --------------------------------------------------------------------

    @Test
    void aRunOnTokensOfAProgramResumesOnlyWithThem() {
        Penstock described = Penstock.ofText(TINY).in(folder.resolve("run"));
        described.with("run.steps", 4).withTokens(counting("counted")).train();

        assertThatThrownBy(() -> described.resume())
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("withTokens(source)")
                .hasMessageContaining("counted")
                .hasMessageNotContaining("null");
    }

    @Test
    void aMeasurementSaysWhatItWasMeasuredOn() {
        Path run = folder.resolve("run");
        Penstock.ofText(TINY).withTokens(counting("counted")).in(run).train();

        assertThat(Penstock.evaluate(run, counting("counted")).measuredOn()).isEqualTo("counted");
        assertThat(Penstock.evaluate(run, counting("others")).measuredOn()).isEqualTo("others");
        assertThatThrownBy(() -> Penstock.evaluate(run, new Counting("large", 10_000, 1_000)))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("expected tokens from 0 to 255");
        assertThatThrownBy(() -> Penstock.evaluate(run))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("evaluate(run, source)")
                .hasMessageContaining("counted");
    }

    @Test
    void problemsOfTokensNameTheMethodThatTookThem() {
        Penstock described = Penstock.ofText(TINY).in(folder.resolve("run"));

        for (TokenSource wrong :
                List.of(
                        new Counting("short", 3, 10),
                        new Counting("none", -1, 10),
                        new Counting("nameless\nsecond line", 10_000, 10),
                        new Counting(" ", 10_000, 10))) {
            PenstockException refused =
                    catchThrowableOfType(
                            PenstockException.class, () -> described.withTokens(wrong).train());
            assertThat(refused).as(wrong.identity()).isNotNull();
            assertThat(refused.problems())
                    .anyMatch(problem -> problem.startsWith("withTokens(source): "))
                    .noneMatch(problem -> problem.contains("data.source"));
        }
    }

    // ---- words ----------------------------------------------------------------------------------

    @Test
    void noCauseHasWordsOfTheCommandLine() throws IOException {
        Path run = folder.resolve("run");
        Penstock described = onText().in(run);
        described.train();

        for (ThrowingCallable wrong :
                List.<ThrowingCallable>of(
                        () -> described.train(),
                        () -> described.with("model.width", -1).check(),
                        () -> described.in(folder.resolve("nothing")).resume(),
                        () -> described.startingWith(folder.resolve("nothing")).resume(),
                        () -> Penstock.evaluate(folder.resolve("nothing")),
                        () -> Penstock.open(folder.resolve("nothing")))) {
            Throwable each = catchThrowableOfType(PenstockException.class, wrong);
            assertThat(each).isNotNull();
            for (; each != null; each = each.getCause()) {
                assertThat(each.getMessage()).doesNotContain("--", "penstock ");
            }
        }
    }

    @Test
    void nullIsRefusedByTheNameOfItsParameterEverywhere() throws IOException {
        Path run = folder.resolve("run");
        onText().in(run).train();
        AtomicReference<Object> nothing = new AtomicReference<>();
        AtomicReference<Map<String, ?>> noKeys = new AtomicReference<>();
        Path noPath = (Path) nothing.get();
        String noText = (String) nothing.get();
        Penstock described = Penstock.ofText(TINY);

        assertNull("file", () -> Penstock.ofFile(noPath));
        assertNull("hocon", () -> Penstock.ofText(noText));
        assertNull("keys", () -> Penstock.of(noKeys.get()));
        assertNull("key", () -> described.with(noText, 1));
        assertNull("value", () -> described.with("run.steps", nothing.get()));
        assertNull("source", () -> described.withTokens((TokenSource) nothing.get()));
        assertNull("start", () -> described.startingWith(noPath));
        assertNull("runDirectory", () -> described.in(noPath));
        assertNull("listener", () -> described.train((TrainingListener) nothing.get()));
        assertNull("listeners", () -> described.start((TrainingListener[]) nothing.get()));
        assertNull("run", () -> Penstock.evaluate(noPath));
        assertNull("source", () -> Penstock.evaluate(run, (TokenSource) nothing.get()));
        assertNull("place", () -> Penstock.open(noPath));
        assertNull("device", () -> Penstock.open(run, noText));
        try (Model model = Penstock.open(run)) {
            var how = Generation.greedy(1);
            assertNull("prompt", () -> model.generate(noText, how));
            assertNull("how", () -> model.generate("a", (Generation) nothing.get()));
            assertNull("source", () -> model.evaluate(noPath));
            assertNull("task", () -> model.evaluate(run, noText, "plain"));
            assertNull("protocol", () -> model.evaluate(run, "text", noText));
        }
    }

    private static void assertNull(String name, ThrowingCallable call) {
        assertThatThrownBy(call).isInstanceOf(NullPointerException.class).hasMessage(name);
    }

    @Test
    void aPortThatIsNoneIsRefusedInWords() throws IOException {
        Path run = folder.resolve("run");
        onText().in(run).train();

        try (Model model = Penstock.open(run)) {
            assertThatThrownBy(() -> model.serve(70_000))
                    .isInstanceOf(PenstockException.class)
                    .hasMessage("port: expected 0 to 65535, got 70000; try 0 for any that is free");
        }
    }
}
