package dev.penstock.runtime.report;

import dev.penstock.runtime.metrics.RunDirectory;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes what remains of a run into its directory: loss.svg, gantt.svg, trace.json, profile.txt,
 * summary.json and report.html. The curves are read from metrics.jsonl, so a resumed run shows all
 * of its steps.
 */
public final class RunReport {
    private static final Logger LOG = LoggerFactory.getLogger(RunReport.class);

    private final RunDirectory directory;
    private final RunFacts facts;
    private final RunRecorder recorder;

    /**
     * @param recorder a listener of the run
     */
    public RunReport(RunDirectory directory, RunFacts facts, RunRecorder recorder) {
        this.directory = directory;
        this.facts = facts;
        this.recorder = recorder;
    }

    /** What goes into a file. */
    @FunctionalInterface
    private interface Content {
        void writeTo(Writer out) throws IOException;
    }

    /**
     * Writes the files. Close the metrics' writer before. What cannot be written is said in the
     * summary, and never thrown.
     *
     * @return some lines for the terminal, with where the report lies
     */
    public String write(RunEnding ending) {
        List<String> problems = new ArrayList<>();
        try {
            RunFindings findings = findings(ending);
            writeFiles(findings, problems);
            return RunSummary.text(findings) + where(problems);
        } catch (IOException | RuntimeException e) {
            LOG.warn("the report could not be made", e);
            problems.add(e.toString());
            return where(problems);
        }
    }

    /** The page alone. */
    public String page(RunEnding ending) throws IOException {
        return new ReportPage(findings(ending)).html();
    }

    private RunFindings findings(RunEnding ending) throws IOException {
        return new RunFindings(
                facts,
                recorder.unsaved().isEmpty() ? ending : ending.withoutLastCheckpoint(),
                RunCurves.read(directory.metrics()),
                recorder,
                TypicalStep.of(facts.schedule(), facts.grid(), recorder, facts.links()),
                Prediction.of(facts.schedule(), facts.grid(), recorder.recent(), facts.links()));
    }

    private void writeFiles(RunFindings findings, List<String> problems) {
        file(directory.report(), problems, out -> out.write(new ReportPage(findings).html()));
        file(directory.summary(), problems, out -> out.write(SummaryJson.of(findings)));
        file(
                directory.lossCurve(),
                problems,
                out -> out.write(RunCharts.loss(findings.curves()).file()));
        findings.typical()
                .ifPresent(
                        step ->
                                file(
                                        directory.gantt(),
                                        problems,
                                        out -> out.write(step.gantt().file())));
        if (recorder.size() > 0) {
            StepTrace trace = new StepTrace(facts.name(), facts.schedule(), facts.grid());
            file(directory.trace(), problems, out -> trace.write(recorder.traced(), out));
            file(
                    directory.profile(),
                    problems,
                    out ->
                            out.write(
                                    recorder.profile(
                                            facts.schedule(), facts.grid(), facts.mixedLengths())));
        }
    }

    /** Writes a file completely or not at all. */
    private static void file(Path path, List<String> problems, Content content) {
        Path part = path.resolveSibling(path.getFileName() + ".part");
        try {
            try (BufferedWriter out = Files.newBufferedWriter(part, StandardCharsets.UTF_8)) {
                content.writeTo(out);
            }
            Files.move(
                    part,
                    path,
                    StandardCopyOption.ATOMIC_MOVE,
                    StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException | RuntimeException e) {
            LOG.warn("{} could not be written", path, e);
            problems.add(path.getFileName() + " could not be written: " + e);
            discard(part);
        }
    }

    private static void discard(Path part) {
        try {
            Files.deleteIfExists(part);
        } catch (IOException e) {
            LOG.debug("a partly written {} stays", part, e);
        }
    }

    private String where(List<String> problems) {
        StringBuilder text = new StringBuilder();
        problems.forEach(problem -> text.append(RunSummary.line("problem", problem)));
        if (Files.exists(directory.report())) {
            text.append(RunSummary.line("report", directory.report().toString()));
        }
        return text.toString();
    }
}
