package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.schedules.ir.PipelineShape;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ProgressListenerTest {
    private final SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final PrintStream out = new PrintStream(written, true, StandardCharsets.UTF_8);
    private long now;

    @Test
    void aQuickRunTellsEveryTwentiethPart() {
        try (ProgressListener progress = lines(200)) {
            for (int step = 1; step <= 200; step++) {
                now += TimeUnit.MILLISECONDS.toNanos(100);
                progress.onStep(run.noisy(step));
            }
        }

        assertThat(told()).hasSize(21);
        assertThat(told().getFirst()).startsWith("step 1/200  loss 5.5");
        assertThat(told().getLast()).startsWith("step 200/200").endsWith("ETA 0:00");
    }

    @Test
    void aVeryQuickRunIsNotSpam() {
        try (ProgressListener progress = lines(1000)) {
            for (int step = 1; step <= 1000; step++) {
                now += TimeUnit.MICROSECONDS.toNanos(500);
                progress.onStep(run.noisy(step));
            }
        }

        assertThat(told()).hasSize(2);
    }

    @Test
    void aSlowRunIsHeardOfEveryTenSeconds() {
        try (ProgressListener progress = lines(100_000)) {
            for (int step = 1; step <= 61; step++) {
                progress.onStep(run.noisy(step));
                now += TimeUnit.SECONDS.toNanos(1);
            }
        }

        assertThat(told()).hasSize(7);
        assertThat(told().get(1)).startsWith("step 11/").endsWith("ETA 27:46:29");
    }

    /** Opening devices, reading data: nothing of it comes again. */
    @Test
    void startingUpIsNotCounted() {
        var figures = figures(101);
        now += TimeUnit.SECONDS.toNanos(5);
        StepReport first = run.perfect(1);
        long stepNanos = first.endNanos() - first.startNanos();

        assertThat(figures.left()).isZero();
        figures.onStep(first);

        assertThat(figures.left().toNanos()).isEqualTo(100 * stepNanos);
    }

    /** The first step compiles what all later ones run. */
    @Test
    void theFirstStepSaysNothingOfLaterOnes() {
        var figures = figures(10);
        StepReport usual = run.perfect(2);
        figures.onStep(SimulatedRun.lasting(run.perfect(1), TimeUnit.SECONDS.toNanos(9)));
        now += usual.endNanos() - usual.startNanos();
        figures.onStep(usual);

        double tokens = 2048e9 / (usual.endNanos() - usual.startNanos());
        assertThat(figures.figures()).contains(Quantities.count(tokens) + " tokens/s");
        assertThat(figures.left().toNanos()).isEqualTo(8 * now);
    }

    @Test
    void aRecoveryBeginsAnew() {
        var figures = figures(10);
        StepReport usual = run.perfect(1);
        long stepNanos = usual.endNanos() - usual.startNanos();
        figures.onStep(usual);
        now += stepNanos;
        figures.onStep(run.perfect(2));
        now += TimeUnit.SECONDS.toNanos(5);
        figures.goBackTo(1);

        assertThat(figures.left().toNanos()).isEqualTo(9 * stepNanos);
    }

    @Test
    void aLineTellsEverything() {
        try (ProgressListener progress = lines(10)) {
            progress.onEvaluation(0, 5.625, OptionalDouble.empty());
            progress.onStep(run.noisy(1));
        }

        assertThat(told().getFirst())
                .matches(
                        "step 1/10  loss \\d\\.\\d{4}  validation 5\\.6250  [\\d.]+k? tokens/s"
                                + "  bubble \\d+\\.\\d % \\(predicted \\d+\\.\\d %\\)  ETA .*");
    }

    @Test
    void theLastEvaluationIsTold() {
        try (ProgressListener progress = lines(1)) {
            progress.onStep(run.noisy(1));
            progress.onEvaluation(1, 2.125, OptionalDouble.empty());
        }

        assertThat(told().getLast()).contains("validation 2.1250");
    }

    @Test
    void troubleIsToldAtOnce() {
        try (ProgressListener progress = lines(10)) {
            progress.onCheckpointFailed(5, "No space left on device");
            progress.onStall("rank 1 has waited for 1RECV_F0 for 5 s");
        }

        assertThat(told())
                .containsExactly(
                        "step 5: the checkpoint failed: No space left on device",
                        "rank 1 has waited for 1RECV_F0 for 5 s");
    }

    @Test
    void aTerminalGetsABar() {
        try (ProgressListener progress =
                ProgressListener.of(
                        new PrintWriter(out, false, StandardCharsets.UTF_8),
                        Optional.of(out),
                        160,
                        "quick",
                        0,
                        4,
                        StepTokens.always(2048),
                        new PipelineMeter(run.schedule()))) {
            progress.onStep(run.noisy(1));
            progress.onStep(run.noisy(2));
        }

        assertThat(written.toString(StandardCharsets.UTF_8))
                .contains("\r")
                .contains("quick")
                .contains("2/4")
                .containsPattern("loss \\d\\.\\d{4} .*tok/s  bubble .* \\(ideal ");
    }

    @Test
    void aNarrowTerminalLosesWhatMattersLeast() {
        var line =
                new ProgressLine(
                        "quickstart",
                        150,
                        600,
                        Duration.ofSeconds(66),
                        new ProgressLine.Figures("2.8412", "12.3k", "14.2 %", "11.1 %", "2.9000"));

        for (int width = 1; width <= 200; width++) {
            assertThat(line.text(width, true)).hasSize(width);
        }
        assertThat(line.text(130, true))
                .startsWith("quickstart  25 % │███")
                .contains(" 150/600  loss 2.8412  12.3k tok/s  bubble 14.2 % (ideal 11.1 %)")
                .contains("  val 2.9000  ETA 1:06");
        assertThat(line.text(80, true))
                .startsWith(" 25 % │███▎         │ 150/600")
                .endsWith("loss 2.8412  12.3k tok/s  bubble 14.2 %  ETA 1:06");
        assertThat(line.text(40, false)).isEqualTo(" 25 % |==         | 150/600  loss 2.8412");
        assertThat(line.text(10, false)).isEqualTo(" 25 % 150/");
    }

    private ProgressListener lines(long steps) {
        return new ProgressLinesListener(
                new PrintWriter(out, true, StandardCharsets.UTF_8), figures(steps));
    }

    private ProgressFigures figures(long steps) {
        PipelineMeter meter = new PipelineMeter(run.schedule());
        return new ProgressFigures(0, steps, StepTokens.always(2048), meter, () -> now);
    }

    private List<String> told() {
        return written.toString(StandardCharsets.UTF_8).lines().toList();
    }
}
