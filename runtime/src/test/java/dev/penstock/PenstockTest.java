package dev.penstock;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.Trained;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongToIntFunction;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PenstockTest {
    /** Small, and the same for every run here. */
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

    /** Keeps what it is told. */
    private static final class Kept implements TrainingListener {
        final List<TrainingStep> steps = new ArrayList<>();
        final List<Long> evaluated = new ArrayList<>();
        final List<Path> checkpoints = new ArrayList<>();
        final List<TrainingEnd> ends = new ArrayList<>();
        private final long stopAfter;
        private @Nullable Training training;

        Kept(long stopAfter) {
            this.stopAfter = stopAfter;
        }

        @Override
        public void onBegin(Training begun) {
            training = begun;
        }

        @Override
        public void onStep(TrainingStep step) {
            steps.add(step);
            if (step.step() == stopAfter) {
                requireNonNull(training).stop();
            }
        }

        @Override
        public void onHeldOutLoss(long step, double loss) {
            evaluated.add(step);
        }

        @Override
        public void onCheckpoint(long step, Path checkpoint) {
            checkpoints.add(checkpoint);
        }

        @Override
        public void onEnd(TrainingEnd end) {
            ends.add(end);
        }

        List<Double> losses() {
            return steps.stream().map(TrainingStep::loss).toList();
        }
    }

    private Path text() throws IOException {
        return Files.writeString(
                folder.resolve("text.txt"), dev.penstock.runtime.cli.Training.text(20_000));
    }

    private static List<byte[]> weights(Path checkpoint) throws IOException {
        try (Stream<Path> files = Files.list(checkpoint)) {
            List<byte[]> all = new ArrayList<>();
            for (Path file :
                    files.filter(f -> f.toString().endsWith(".safetensors")).sorted().toList()) {
                all.add(Files.readAllBytes(file));
            }
            return all;
        }
    }

    @Test
    void aTrainingHasTheBitsOfTheCommandLines() throws IOException {
        dev.penstock.runtime.cli.Training typed =
                dev.penstock.runtime.cli.Training.onText(folder.resolve("typed"));
        Trained trained = typed.complete();
        var kept = new Kept(0);

        TrainingEnd end =
                Penstock.ofFile(typed.configuration()).in(folder.resolve("own")).train(kept);

        assertThat(end.completed()).isTrue();
        assertThat(end.step()).isEqualTo(12);
        assertThat(Trained.lossBits(end.directory())).isEqualTo(trained.lossBits());
        assertThat(kept.losses()).isEqualTo(trained.losses());
        assertThat(kept.evaluated).containsExactly(0L, 3L, 6L, 9L, 12L);
        assertThat(kept.checkpoints).hasSize(3);
        assertThat(kept.ends).containsExactly(end);
        assertThat(end.checkpoint()).contains(kept.checkpoints.getLast());
        assertThat(weights(end.checkpoint().orElseThrow()))
                .isNotEmpty()
                .containsExactlyElementsOf(
                        weights(typed.directory().resolve("checkpoints/step-000012")));
        assertThat(end.report()).exists();
    }

    @Test
    void aStoppedTrainingSavesAndResumesBitForBit() throws IOException {
        Penstock described =
                Penstock.ofText(TINY)
                        .with("data.source", text())
                        .with("run.steps", 100)
                        .with("evaluation.every", 50)
                        .with("checkpoint.every", 50);
        TrainingEnd whole = described.in(folder.resolve("whole")).train();
        Penstock parted = described.in(folder.resolve("parted"));

        TrainingEnd stopped = parted.train(new Kept(2));
        TrainingEnd resumed = parted.resume();

        assertThat(stopped.completed()).isFalse();
        assertThat(stopped.step()).isBetween(2L, 99L);
        assertThat(resumed.completed()).isTrue();
        assertThat(Trained.lossBits(resumed.directory()))
                .isEqualTo(Trained.lossBits(whole.directory()));
    }

    @Test
    void aTrainingOfItsOwnThreadIsStoppedAndAwaited() throws Exception {
        Penstock described =
                Penstock.ofText(TINY)
                        .with("data.source", text())
                        .with("run.steps", 100_000)
                        .in(folder.resolve("run"));

        try (Training training = described.start()) {
            training.stop();

            assertThat(training.await().completed()).isFalse();
            assertThat(training.hasEnded()).isTrue();
        }
    }

    @Test
    void aListenerThatThrowsStopsTheTraining() throws IOException {
        Penstock described =
                Penstock.ofText(TINY)
                        .with("data.source", text())
                        .with("run.steps", 100_000)
                        .in(folder.resolve("run"));

        assertThatThrownBy(
                        () ->
                                described.train(
                                        new TrainingListener() {
                                            @Override
                                            public void onStep(TrainingStep step) {
                                                throw new IllegalStateException("no more");
                                            }
                                        }))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("no more");
    }

    @Test
    void aListenerThatWaitsForTheEndIsRefused() throws IOException {
        Training[] begun = new Training[1];
        Penstock described =
                Penstock.ofText(TINY).with("data.source", text()).in(folder.resolve("run"));

        assertThatThrownBy(
                        () ->
                                described.train(
                                        new TrainingListener() {
                                            @Override
                                            public void onBegin(Training training) {
                                                begun[0] = training;
                                            }

                                            @Override
                                            public void onStep(TrainingStep step) {
                                                begun[0].close();
                                            }
                                        }))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("call stop(), or wait on another thread");
    }

    @Test
    void allProblemsAreToldAtOnceAndNothingIsLeftBehind() {
        Path run = folder.resolve("run");

        PenstockException refused =
                catchThrowableOfType(
                        PenstockException.class,
                        () ->
                                Penstock.of(Map.of("model.width", -1, "run.stepz", 3))
                                        .with("data.source", folder.resolve("nothing"))
                                        .in(run)
                                        .train());

        assertThat(refused.problems())
                .hasSizeGreaterThanOrEqualTo(3)
                .anyMatch(problem -> problem.startsWith("with(\"model.width\", -1): "))
                .anyMatch(problem -> problem.contains("did you mean run.steps?"))
                .anyMatch(problem -> problem.contains("data.source"))
                .noneMatch(problem -> problem.contains("--"));
        assertThat(run).doesNotExist();
    }

    @Test
    void aCheckStartsNothing() throws IOException {
        Path run = folder.resolve("run");
        Penstock described = Penstock.ofText(TINY).with("data.source", text()).in(run);

        described.check();

        assertThat(run).doesNotExist();
        assertThatThrownBy(() -> described.with("model.heads", 3).check())
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("model.heads");
        assertThatThrownBy(described::resume)
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("in(directory)");
    }

    @Test
    void aModelWritesAndMeasuresAsTheCommandLineDoes() throws IOException {
        Path text = text();
        Path run = folder.resolve("run");
        Penstock.ofText(TINY).with("data.source", text).in(run).train();
        JsonNode written =
                answer("generate", run + "", "--prompt", "the gate ", "--tokens", "24", "--json");
        JsonNode drawn =
                answer(
                        "generate",
                        run + "",
                        "--prompt=the ",
                        "--temperature=0.7",
                        "--top-k=20",
                        "--seed=5",
                        "--tokens=12",
                        "--json");
        JsonNode measured = answer("evaluate", run + "", "--data", text + "", "--json");
        JsonNode heldOut = answer("evaluate", run + "", "--json");

        try (Model model = Penstock.open(run)) {
            Generated greedy = model.generate("the gate ", Generation.of(24));
            var pieces = new ArrayList<String>();
            var how = Generation.of(12).temperature(0.7).topK(20).seed(5);
            Generated sampled =
                    model.generate(
                            "the ",
                            how,
                            sofar -> {
                                pieces.add(sofar);
                                return true;
                            });

            assertThat(greedy.text()).isEqualTo(written.get("text").asText());
            assertThat(sampled.text()).isEqualTo(drawn.get("text").asText());
            assertThat(pieces).hasSize(12).last().isEqualTo(sampled.text());
            assertThat(model.generate(bytes("the "), how))
                    .containsExactly(sampled.tokens().stream().mapToInt(t -> t).toArray());
            assertThat(model.evaluate(text).figure("loss"))
                    .isEqualTo(measured.get("loss").asDouble());
            assertThat(Penstock.evaluate(run).loss()).isEqualTo(heldOut.get("loss").asDouble());
            assertThat(model.step()).hasValue(8);
        }
    }

    @Test
    void aModelInFewerBitsWritesWhatTheCommandDoes() throws IOException {
        Path run = folder.resolve("saved");
        SavedRun.write(run, 1);
        for (Weights weights : Weights.values()) {
            JsonNode written =
                    answer(
                            "generate",
                            run + "",
                            "--prompt=the ",
                            "--seed=5",
                            "--tokens=12",
                            "--weights=" + weights.name().toLowerCase(Locale.ROOT),
                            "--json");

            try (Model model = Penstock.open(run, "cpu", weights)) {
                assertThat(model.generate("the ", Generation.of(12).seed(5)).text())
                        .isEqualTo(written.get("text").asText());
            }
        }
        assertThatThrownBy(() -> Penstock.open(run, "cuda", Weights.INT8))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("expected FLOAT32 with cuda, got INT8");
    }

    @Test
    void aModelIsClosedAgainInPeace() throws IOException {
        Path run = folder.resolve("run");
        Penstock.ofText(TINY).with("data.source", text()).in(run).train();
        Model model = Penstock.open(run);

        model.close();

        assertThatCode(model::close).doesNotThrowAnyException();
    }

    @Test
    void whatAModelCannotDoIsSaid() throws IOException {
        Path run = folder.resolve("run");
        Penstock.ofText(TINY).with("data.source", text()).in(run).train();

        try (Model model = Penstock.open(run)) {
            assertThatThrownBy(() -> model.generate("a".repeat(17), Generation.greedy(1)))
                    .isInstanceOf(PenstockException.class)
                    .hasMessageContaining("16 tokens");
            assertThatThrownBy(() -> model.evaluate(folder.resolve("nothing.txt")))
                    .isInstanceOf(PenstockException.class);
            assertThatThrownBy(() -> model.evaluate(run, "wikitext", "plain"))
                    .isInstanceOf(PenstockException.class)
                    .hasMessageContaining("megatron or lm-eval");
        }
        try (Model model = Penstock.open(run, "cuda:99")) {
            assertThatThrownBy(() -> model.generate("a", Generation.greedy(1)))
                    .isInstanceOf(PenstockException.class);
            assertThatThrownBy(() -> model.serve(0)).isInstanceOf(PenstockException.class);
        }
        assertThatThrownBy(() -> Penstock.open(folder.resolve("nothing")))
                .isInstanceOf(PenstockException.class);
        assertThatThrownBy(() -> Penstock.open(run, "abacus"))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("abacus");
    }

    private static int[] bytes(String text) {
        byte[] bytes = text.getBytes(UTF_8);
        int[] tokens = new int[bytes.length];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = Byte.toUnsignedInt(bytes[i]);
        }
        return tokens;
    }

    private static JsonNode answer(String... words) throws IOException {
        Cli cli = Cli.run(words);
        assertThat(cli.exitCode()).as(cli.err()).isZero();
        return new ObjectMapper().readTree(cli.out());
    }

    // ---- tokens of one's own --------------------------------------------------------------------

    /** The bytes of a text, as tokens that no file has. */
    private record BytesOf(String identity, byte[] text, AtomicInteger reads)
            implements TokenSource {
        static BytesOf named(String identity) {
            return new BytesOf(
                    identity,
                    dev.penstock.runtime.cli.Training.text(20_000).getBytes(UTF_8),
                    new AtomicInteger());
        }

        @Override
        public long size() {
            return text.length;
        }

        @Override
        public void read(long first, int[] target, int offset, int count) {
            reads.incrementAndGet();
            for (int i = 0; i < count; i++) {
                target[offset + i] = Byte.toUnsignedInt(text[(int) first + i]);
            }
        }
    }

    @Test
    void tokensOfAProgramTrainAsTheSameTokensOfAFile() throws IOException {
        BytesOf own = BytesOf.named("text");

        TrainingEnd ofFile =
                Penstock.ofText(TINY)
                        .with("data.source", text())
                        .in(folder.resolve("file"))
                        .train();
        TrainingEnd ofTokens =
                Penstock.ofText(TINY).withTokens(own).in(folder.resolve("tokens")).train();

        assertThat(Trained.lossBits(ofTokens.directory()))
                .isEqualTo(Trained.lossBits(ofFile.directory()));
        assertThat(own.reads().get()).isPositive();
        assertThat(Penstock.evaluate(ofTokens.directory(), own).loss())
                .isEqualTo(Penstock.evaluate(ofFile.directory()).loss());
    }

    @Test
    void aRunResumesOnlyOnTheTokensItWasTrainedOn() {
        Penstock described = Penstock.ofText(TINY).in(folder.resolve("run"));
        described.withTokens(BytesOf.named("first")).with("run.steps", 4).train();

        assertThatThrownBy(() -> described.withTokens(BytesOf.named("second")).resume())
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("first")
                .hasMessageContaining("second");
        assertThatThrownBy(() -> Penstock.evaluate(folder.resolve("run")))
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("data.format");
        assertThat(described.withTokens(BytesOf.named("first")).resume().step()).isEqualTo(8);
    }

    @Test
    void theCommandLineSaysThatAProgramHasTheTokens() {
        Path run = folder.resolve("run");
        Penstock.ofText(TINY).withTokens(BytesOf.named("own")).in(run).train();

        Cli resumed = Cli.run("train", run + "/resolved.conf", "--run-dir", run + "", "--resume");

        assertThat(resumed.exitCode()).isEqualTo(2);
        assertThat(resumed.err()).contains("data.format").contains("a program");
    }

    @Test
    void badTokensAreRefusedByName() {
        Random random = new Random(3);
        Penstock described = Penstock.ofText(TINY).in(folder.resolve("run"));
        TokenSource changing = tokens(_ -> random.nextInt(256));
        TokenSource large = tokens(place -> place > 17 ? 1000 : 1);

        assertThatThrownBy(() -> described.withTokens(changing).train())
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("the same whenever they are read");
        assertThatThrownBy(() -> described.withTokens(large).train())
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("expected tokens from 0 to 255, got 1000");
        assertThatThrownBy(
                        () ->
                                described
                                        .withTokens(BytesOf.named("own"))
                                        .with("data.source", folder)
                                        .with("pipeline.processes", "per-stage")
                                        .with("data.packing", "documents")
                                        .check())
                .isInstanceOf(PenstockException.class)
                .hasMessageContaining("withTokens(source) and data.source")
                .hasMessageContaining("pipeline.processes")
                .hasMessageContaining("data.packing");
    }

    private static TokenSource tokens(LongToIntFunction token) {
        return new TokenSource() {
            @Override
            public String identity() {
                return "made up";
            }

            @Override
            public long size() {
                return 10_000;
            }

            @Override
            public void read(long first, int[] target, int offset, int count) {
                for (int i = 0; i < count; i++) {
                    target[offset + i] = token.applyAsInt(first + i);
                }
            }
        };
    }
}
