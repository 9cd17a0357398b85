package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;

class RunReportTest {
    private static final int STEPS = 60;
    private static final String EVIL =
            "</title><script>alert('x')</script><img src=x onerror=\"alert(1)\">&amp;\u0001";

    private final SimulatedRun run = SimulatedRun.tied("seq1f1b", PipelineShape.of(2, 8, 2));

    @TempDir private Path folder;

    @Test
    void everyFileOfTheReportIsWritten() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "quickstart");

        String summary = train(directory, "quickstart", "Once upon a time");

        assertThat(directory.report()).isNotEmptyFile();
        assertThat(directory.lossCurve()).isNotEmptyFile();
        assertThat(directory.gantt()).isNotEmptyFile();
        assertThat(directory.trace()).isNotEmptyFile();
        assertThat(directory.path()).isDirectoryNotContaining("glob:**.part");
        assertThat(summary)
                .contains("quickstart, completed, NOT SAVED in 1:40")
                .contains("60 of 60")
                .contains("validation 2.6")
                .contains("tokens/s")
                .containsPattern("bubble \\d+\\.\\d % measured, \\d+\\.\\d % predicted")
                .containsPattern("prediction +a simulated step takes [\\d.]+ ms, a measured one")
                .contains("rank 1 286.1 MiB (planned 280.0 MiB)")
                .contains("report         " + directory.report());
    }

    @Test
    void thePageHoldsEverythingAndLoadsNothing() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "quickstart");
        train(directory, "quickstart", "Once upon a time");

        String page = Files.readString(directory.report());

        assertThat(page)
                .contains("default-src 'none'")
                .contains("Training loss")
                .contains("Pipeline efficiency")
                .contains("Step timeline")
                .contains("measured: step ")
                .contains("simulated with the same op times")
                .contains("Predicted and measured", "the prediction's error is")
                .contains("By kind of op", "Where its waiting came from")
                .contains("Once upon a time")
                .contains("run { name = quickstart }")
                .contains("onednn-3.6-avx512")
                .contains("1, the last one after step 60: 30.0 MiB; 250 ms each")
                .contains("no space left for quickstart");
        assertThat(page.split("<svg", -1)).hasSize(1 + 7);
        Set<String> addresses = new HashSet<>();
        Matcher address = Pattern.compile("(?:https?:)?//[\\w.]+\\.\\w+").matcher(page);
        while (address.find()) {
            addresses.add(address.group());
        }
        assertThat(addresses).containsExactly("http://www.w3.org");
        assertThat(page).doesNotContain("<script", "<link", "<img", "url(", "@import", "src=");
    }

    @Test
    void untrustedTextStaysText() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "evil");
        train(directory, EVIL, EVIL);

        String page = Files.readString(directory.report());

        assertThat(page).doesNotContain("<script", "<img", "onerror=\"", "\u0001");
        assertThat(page).contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
        assertThat(page.split("</title>", -1).length - 1)
                .isEqualTo(page.split("<title>", -1).length - 1);
        assertWellFormed(page.replaceFirst("<!DOCTYPE html>", "").replaceAll("<meta[^>]*>", ""));
        JsonNode trace = new ObjectMapper().readTree(directory.trace().toFile());
        assertThat(trace.get("traceEvents").get(0).get("args").get("name").asText())
                .isEqualTo(EVIL);
    }

    @Test
    void picturesAreWellFormedFiles() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "quickstart");
        train(directory, "quickstart", "text");

        Document gantt = assertWellFormed(Files.readString(directory.gantt()));
        Document loss = assertWellFormed(Files.readString(directory.lossCurve()));

        Set<String> titles = new HashSet<>();
        for (int i = 0; i < gantt.getElementsByTagName("title").getLength(); i++) {
            titles.add(
                    gantt.getElementsByTagName("title").item(i).getTextContent().split(",", -1)[0]);
        }
        assertThat(titles).containsAll(opNames());
        assertThat(loss.getElementsByTagName("polyline").getLength()).isEqualTo(3);
        assertThat(loss.getElementsByTagName("circle").getLength()).isEqualTo(6 + 1);
    }

    @Test
    void theTraceHasTheSchedulesOpsAtTheirTimes() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "quickstart");
        train(directory, "quickstart", "text");

        JsonNode events =
                new ObjectMapper().readTree(directory.trace().toFile()).get("traceEvents");

        Set<String> names = new HashSet<>();
        Set<Long> steps = new HashSet<>();
        double computing = 0;
        for (JsonNode event : events) {
            if (event.get("ph").asText().equals("X")) {
                names.add(event.get("name").asText());
                steps.add(event.get("args").get("step").asLong());
                assertThat(event.get("ts").asDouble()).isNotNegative();
                assertThat(event.get("dur").asDouble()).isNotNegative();
                boolean compute = Set.of("forward", "backward").contains(event.get("cat").asText());
                computing += compute ? event.get("dur").asDouble() : 0;
            }
        }
        Set<String> expected = new HashSet<>(opNames());
        expected.add("UPDATE");
        assertThat(names).isEqualTo(expected);
        assertThat(steps).containsExactlyInAnyOrder(2L, 31L, 60L);
        double busy = 0;
        PipelineMeter meter = new PipelineMeter(run.schedule());
        for (long step : steps) {
            var times = meter.measure(run.noisy(step)).times();
            busy += (1 - times.bubble()) * times.spanNanos() * 2 / 1e3;
        }
        assertThat(computing).isCloseTo(busy, within(1.0));
    }

    @Test
    void aRunWithoutAStepStillHasAReport() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "short");
        RunRecorder recorder = new RunRecorder(List.of());

        String summary =
                new RunReport(directory, facts("short"), recorder)
                        .write(
                                RunEnding.of(
                                        new RunOutcome.Failed(0, "the disk melted"),
                                        Duration.ofSeconds(2),
                                        Optional.empty()));

        assertThat(summary)
                .contains("failed after step 0: the disk melted")
                .contains("report.html");
        assertThat(Files.readString(directory.report()))
                .contains("failed after step 0: the disk melted");
        assertThat(directory.gantt()).doesNotExist();
    }

    /** The disk was full from step 41 to the end. */
    @Test
    void theSummarySaysWhichStepsItsFiguresLack() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "full");
        int written = 40;
        RunRecorder recorder = record(directory, "full", written);
        for (int step = written + 1; step <= STEPS; step++) {
            recorder.onStep(run.noisy(step));
        }

        assertThat(summaryOf(directory, "full", recorder))
                .contains("metrics        NOT WRITTEN after step 40, 60 were done")
                .contains("steps          40 of 60");
        assertThat(summaryOf(directory, "full", record(directory, "full", STEPS)))
                .doesNotContain("NOT WRITTEN");
    }

    private String summaryOf(RunDirectory directory, String name, RunRecorder recorder) {
        return new RunReport(directory, facts(name), recorder)
                .write(
                        RunEnding.of(
                                new RunOutcome.Completed(STEPS),
                                Duration.ofSeconds(100),
                                Optional.empty()));
    }

    @Test
    void aRunThatWasTakenOverSaysOfWhichPartItTellsTheTime() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "taken");

        String summary =
                new RunReport(directory, facts("taken"), record(directory, "taken", STEPS))
                        .write(
                                RunEnding.of(
                                                new RunOutcome.Completed(STEPS),
                                                Duration.ofSeconds(9),
                                                Optional.empty())
                                        .since(50));

        assertThat(summary).contains(" in 0:09 since step 50");
        assertThat(Files.readString(directory.report())).contains("0:09 since step 50");
    }

    @Test
    void whatCannotBeWrittenIsSaidAndNotThrown() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "gone");
        Files.createDirectories(directory.report().resolve("in-the-way"));

        String summary = train(directory, "gone", "text");

        assertThat(summary).contains("problem        report.html could not be written");
        assertThat(directory.lossCurve()).isNotEmptyFile();
    }

    private String train(RunDirectory directory, String name, String sample) {
        return new RunReport(directory, facts(name), record(directory, name, STEPS))
                .write(
                        RunEnding.of(
                                new RunOutcome.Completed(STEPS),
                                Duration.ofSeconds(100),
                                Optional.of(sample)));
    }

    private RunRecorder record(RunDirectory directory, String name, int steps) {
        RunRecorder recorder = new RunRecorder(RunRecorder.defaultSteps(0, STEPS));
        PipelineMeter meter = new PipelineMeter(run.schedule());
        try (MetricsWriter writer =
                new MetricsWriter(
                        directory.metrics(),
                        0,
                        meter,
                        new ConfiguredSteps(StepTokens.always(2048), _ -> 3e-4, ""),
                        InstantSource.system())) {
            ListenerFanOut listeners = new ListenerFanOut(List.of(writer, recorder));
            String device = "cpu, 1 thread, " + name;
            listeners.onOpened(List.of(device, device), "onednn-3.6-avx512 " + name);
            for (int step = 1; step <= steps; step++) {
                listeners.onStep(run.noisy(step));
                if (step % 10 == 0) {
                    listeners.onEvaluation(
                            step, 2.25 + 3.3 / Math.sqrt(step), OptionalDouble.empty());
                }
            }
        }
        recorder.onCheckpoint(STEPS, 30 << 20, 250_000_000);
        recorder.onCheckpointFailed(STEPS, "no space left for " + name);
        recorder.onStall(name + " waits");
        return recorder;
    }

    private RunFacts facts(String name) {
        MemoryPlan planned =
                new MemoryPlan(List.of(), List.of(new MemoryUse("parameters", 280L << 20)));
        return new RunFacts(
                name,
                "run { name = " + name + " }",
                run.schedule(),
                RankGrid.pipeline(2),
                STEPS,
                2048,
                3_200_000,
                List.of(planned, planned),
                List.of(),
                List::of,
                (costs, _) -> costs,
                Map.of("version", "0.1.0 " + name, name, "value"));
    }

    private Set<String> opNames() {
        List<String> names = new ArrayList<>();
        for (RankProgram program : run.schedule().programs()) {
            program.ops().forEach(op -> names.add(OpText.print(op, run.schedule().shape())));
        }
        return Set.copyOf(names);
    }

    private static Document assertWellFormed(String xml) {
        try {
            return DocumentBuilderFactory.newInstance()
                    .newDocumentBuilder()
                    .parse(new ByteArrayInputStream(xml.getBytes(StandardCharsets.UTF_8)));
        } catch (Exception e) {
            throw new AssertionError("not well-formed: " + e.getMessage(), e);
        }
    }
}
