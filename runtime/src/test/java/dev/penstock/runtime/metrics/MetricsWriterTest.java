package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.schedules.ir.PipelineShape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MetricsWriterTest {
    private static final InstantSource NOON =
            InstantSource.fixed(Instant.parse("2026-03-01T12:00:00Z"));

    private static final Overflow SKIPPED = new Overflow(2, 1, 3, 65_536, 32_768);

    private final SimulatedRun run = SimulatedRun.tied("1f1b", PipelineShape.of(2, 8));

    @TempDir private Path folder;

    @Test
    void everyDocumentedFieldIsWrittenAndEveryWrittenFieldIsDocumented() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(run.noisy(1));
            writer.onEvaluation(1, 5.5, OptionalDouble.of(0.75));
            writer.onOverflow(SKIPPED);
        }

        List<JsonNode> lines = parsed(file);

        assertThat(fields(lines.get(0))).isEqualTo(documented("step"));
        assertThat(fields(lines.get(1))).isEqualTo(documented("evaluation"));
        assertThat(fields(lines.get(2))).isEqualTo(documented("skipped"));
        assertThat(fields(lines.get(0).get("rankMillis")))
                .allSatisfy(name -> assertThat(documentation()).contains("`" + name + "`"));
    }

    @Test
    void aStepIsWrittenAsItWasMeasured() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        StepReport report = run.noisy(3);
        StepMeasure measure = new PipelineMeter(run.schedule()).measure(report);
        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(report);
        }

        JsonNode line = parsed(file).getFirst();

        assertThat(line.get("step").asLong()).isEqualTo(3);
        assertThat(line.get("loss").asDouble()).isEqualTo(report.loss());
        assertThat(Long.parseUnsignedLong(line.get("lossBits").asText(), 16))
                .isEqualTo(Double.doubleToRawLongBits(report.loss()));
        assertThat(line.get("learningRate").asDouble()).isEqualTo(3 * 1e-4);
        double seconds = (report.endNanos() - report.startNanos()) / 1e9;
        assertThat(line.get("tokensPerSecond").asDouble()).isCloseTo(2048 / seconds, within(0.1));
        assertThat(line.get("bubbleMeasured").asDouble())
                .isCloseTo(measure.times().bubble(), within(1e-6));
        assertThat(line.get("rankMillis").get("forward")).hasSize(2);
        assertThat(line.get("peakBytes").get(1).asLong()).isEqualTo(300_000_001);
        assertThat(line.get("heapBytesPerOp").get(0).asDouble()).isEqualTo(40);
    }

    @Test
    void whatIsWrittenIsReadBackExactly() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(run.noisy(1));
            writer.onEvaluation(1, Double.POSITIVE_INFINITY, OptionalDouble.empty());
            writer.onStep(withLoss(run.noisy(2), Double.NaN));
        }

        List<MetricsLine> lines = read(file);

        assertThat(lines).hasSize(3);
        assertThat(((StepMetrics) lines.get(0)).loss()).isEqualTo(run.noisy(1).loss());
        assertThat(((StepMetrics) lines.get(0)).rankMillis().get(Activity.SEND)).hasSize(2);
        assertThat(((EvaluationMetrics) lines.get(1)).validationLoss())
                .isEqualTo(Double.POSITIVE_INFINITY);
        assertThat(((StepMetrics) lines.get(2)).loss()).isNaN();
        assertThat(parsed(file).get(2).get("loss").isNull()).isTrue();
    }

    /** Epochs of three steps, the last of which has a quarter of the sequences. */
    @Test
    void aSmallerLastStepOfAnEpochHasFewerTokens() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        try (MetricsWriter writer = writer(file, 0, new StepTokens(2048, 3, 512))) {
            for (int step = 1; step <= 6; step++) {
                writer.onStep(run.perfect(step));
            }
        }

        List<StepMetrics> steps = read(file).stream().map(StepMetrics.class::cast).toList();

        assertThat(steps)
                .extracting(StepMetrics::tokens)
                .containsExactly(2048L, 2048L, 512L, 2048L, 2048L, 512L);
        assertThat(steps.get(2).tokensPerSecond()).isEqualTo(512 / steps.get(2).stepMillis() * 1e3);
        assertThat(steps).extracting(StepMetrics::layout).containsOnly("0badcafe");
    }

    @Test
    void aResumedRunDropsWhatCameAfterItsCheckpoint() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        try (MetricsWriter writer = writer(file, 0)) {
            for (int step = 1; step <= 5; step++) {
                writer.onStep(run.noisy(step));
                writer.onEvaluation(step, 6 - step, OptionalDouble.empty());
            }
        }
        Files.writeString(file, "{\"type\":\"step\",\"st", StandardOpenOption.APPEND);

        try (MetricsWriter writer = writer(file, 3)) {
            writer.onEvaluation(3, 3, OptionalDouble.empty()); // evaluated again, before going on
            writer.onStep(run.noisy(3)); // and a commit heard twice
            writer.onStep(run.noisy(4));
        }

        assertThat(read(file))
                .extracting(line -> line.getClass().getSimpleName().charAt(0) + "" + line.step())
                .containsExactly("S1", "E1", "S2", "E2", "S3", "E3", "S4");
    }

    /** A process is killed after the ranks have applied a step and before its line is written. */
    @Test
    void aRunThatGoesOnWritesTheLineThatAKilledProcessDidNot() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        Path left = folder.resolve("committed.txt");
        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(run.noisy(1));
        }
        double loss = 0.1 + 0.2;
        CommittedStep.journal(left)
                .append(
                        List.of(
                                new JournalRecord.Committed(1, 2, 0.25, loss, 4),
                                new JournalRecord.Published(1)));

        for (int start = 0; start < 2; start++) {
            try (MetricsWriter writer = writer(file, 2)) {
                writer.catchUp(left);
            }
        }
        try (MetricsWriter writer = writer(file, 1)) { // from a checkpoint: the step is done again
            writer.catchUp(left);
            writer.onStep(run.noisy(2));
        }
        try (MetricsWriter writer = writer(file, 2)) {
            writer.catchUp(left);
            writer.catchUp(folder.resolve("nothing"));
        }

        assertThat(parsed(file)).hasSize(2);
        Files.delete(file);
        try (MetricsWriter writer = writer(file, 2)) {
            writer.catchUp(left);
        }
        StepMetrics line = (StepMetrics) read(file).getFirst();
        assertThat(line.loss()).isEqualTo(loss);
        assertThat(line.clipFactor()).isEqualTo(0.25);
        assertThat(line.stepMillis()).isNaN();

        Files.delete(file);
        Files.writeString(left, Files.readString(left).replace("0x1.0p2", "0x1.0p3"));
        try (MetricsWriter writer = writer(file, 2)) {
            writer.catchUp(left);
        }
        assertThat(file).as("of a damaged file").isEmptyFile();
    }

    @Test
    void aNewRunStartsWithAnEmptyFile() throws IOException {
        Path file = Files.writeString(folder.resolve("metrics.jsonl"), "rubbish\n");

        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(run.noisy(1));
        }

        assertThat(parsed(file)).hasSize(1);
    }

    @Test
    void aSkippedStepHasALineUntilItIsTakenBack() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(run.noisy(1));
            writer.onOverflow(SKIPPED);
            writer.onOverflow(SKIPPED);
            assertThat(read(file)).last().isEqualTo(new SkippedMetrics(NOON.instant(), SKIPPED));
            assertThat(read(file)).hasSize(2);
        }

        try (MetricsWriter writer = writer(file, 1)) {
            writer.onStep(run.noisy(2));
        }

        assertThat(read(file)).hasOnlyElementsOfType(StepMetrics.class).hasSize(2);
    }

    @Test
    void metricsContinueWhenTheDiskHasRoomAgain() throws IOException {
        assumeTrue(Files.exists(Path.of("/dev/full")), "this system has no /dev/full");
        Path file = Files.createSymbolicLink(folder.resolve("metrics.jsonl"), Path.of("/dev/full"));
        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(run.noisy(1));
            writer.onEvaluation(1, 3, OptionalDouble.empty());
            Files.delete(file);
            writer.onStep(run.noisy(2));
            writer.onStep(run.noisy(3));
        }

        JsonNode gap = parsed(file).getFirst();

        assertThat(fields(gap)).isEqualTo(documented("gap"));
        assertThat(gap.get("missing").asLong()).isEqualTo(2);
        assertThat(read(file)).extracting(MetricsLine::step).containsExactly(2L, 3L);
    }

    /** A thousand ranks make lines of 350 KB, and the supervisor's thread waits. */
    @Test
    void aRollbackReadsOnlyWhatItRemoves() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        try (MetricsWriter writer = writer(file, 0)) {
            for (int step = 1; step <= 20; step++) {
                writer.onStep(run.noisy(step));
                writer.onEvaluation(step, 3, OptionalDouble.empty());
            }
            String lines = Files.readString(file);
            Files.writeString(file, "never read\n" + lines);

            assertThat(MetricsFile.cutAfter(file, 15)).isTrue();
        }

        assertThat(Files.readString(file)).startsWith("never read\n");
        assertThat(read(file)).hasSize(30).last().extracting(MetricsLine::step).isEqualTo(15L);
    }

    @Test
    void aFullDiskStopsTheMetricsAndNothingElse() {
        Path full = Path.of("/dev/full");
        assumeTrue(Files.exists(full), "this system has no /dev/full");

        assertThatCode(
                        () -> {
                            try (MetricsWriter writer = writer(full, 0)) {
                                writer.onStep(run.noisy(1));
                                writer.onStep(run.noisy(2));
                                writer.onEvaluation(2, 3, OptionalDouble.empty());
                            }
                        })
                .doesNotThrowAnyException();
    }

    @Test
    void aMissingFolderStopsTheMetricsAndNothingElse() {
        assertThatCode(() -> writer(folder.resolve("none/metrics.jsonl"), 0).onStep(run.noisy(1)))
                .doesNotThrowAnyException();
    }

    @Test
    void everyLineIsOnItsWayToTheDiskAtOnce() throws IOException {
        Path file = folder.resolve("metrics.jsonl");
        try (MetricsWriter writer = writer(file, 0)) {
            writer.onStep(run.noisy(1));

            assertThat(read(file)).hasSize(1);
        }
    }

    private MetricsWriter writer(Path file, long resumedStep) {
        return writer(file, resumedStep, StepTokens.always(2048));
    }

    private MetricsWriter writer(Path file, long resumedStep, StepTokens tokens) {
        return new MetricsWriter(
                file,
                resumedStep,
                new PipelineMeter(run.schedule()),
                new ConfiguredSteps(tokens, step -> step * 1e-4, "0badcafe"),
                NOON);
    }

    private static StepReport withLoss(StepReport report, double loss) {
        return new StepReport(
                report.step(), loss, 1, 1, report.startNanos(), report.endNanos(), report.ranks());
    }

    private static List<MetricsLine> read(Path file) throws IOException {
        List<MetricsLine> lines = new ArrayList<>();
        MetricsFile.forEach(file, lines::add);
        return lines;
    }

    private static List<JsonNode> parsed(Path file) throws IOException {
        ObjectMapper json = new ObjectMapper();
        List<JsonNode> lines = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            lines.add(json.readTree(line));
        }
        return lines;
    }

    private static Set<String> fields(JsonNode object) {
        Set<String> names = new LinkedHashSet<>();
        object.fieldNames().forEachRemaining(names::add);
        return names;
    }

    /** The first column of a table of docs/metrics.md, in its order. */
    private static Set<String> documented(String type) throws IOException {
        String section = documentation().split("## Lines of type `" + type + "`", -1)[1];
        Matcher rows = Pattern.compile("(?m)^\\| `(\\w+)`").matcher(section.split("\n## ", -1)[0]);
        Set<String> fields = new LinkedHashSet<>();
        while (rows.find()) {
            fields.add(rows.group(1));
        }
        return fields;
    }

    private static String documentation() throws IOException {
        return Files.readString(Path.of("../docs/metrics.md"));
    }
}
