package dev.penstock.runtime.export;

import dev.penstock.runtime.metrics.EvaluationMetrics;
import dev.penstock.runtime.metrics.MetricsFile;
import dev.penstock.runtime.metrics.MetricsLine;
import dev.penstock.runtime.metrics.RecoveryMetrics;
import dev.penstock.runtime.metrics.SkippedMetrics;
import dev.penstock.runtime.metrics.StepMetrics;
import dev.penstock.runtime.metrics.TaskMetrics;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Path;

/**
 * Steps and evaluations as comma-separated values (RFC 4180), one row each; fields are empty if not
 * known. A skipped step has the clip factor 0 and nothing else.
 */
public final class CsvTable {
    private static final String HEADER =
            "step,time,loss,validation_loss,gradient_norm,clip_factor,learning_rate,tokens,step_ms,"
                    + "tokens_per_second,bubble_measured,bubble_predicted,efficiency\r\n";

    private CsvTable() {}

    /**
     * Writes all steps and evaluations of a metrics file.
     *
     * @param out stays open
     */
    public static void write(Path metrics, Writer out) throws IOException {
        out.write(HEADER);
        try {
            MetricsFile.forEach(metrics, line -> write(out, line));
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private static void write(Writer out, MetricsLine line) {
        try {
            switch (line) {
                case StepMetrics step ->
                        row(
                                out,
                                step.step(),
                                step.time(),
                                step.loss(),
                                "",
                                step.gradientNorm(),
                                step.clipFactor(),
                                step.learningRate(),
                                step.tokens(),
                                step.stepMillis(),
                                step.tokensPerSecond(),
                                step.bubbleMeasured(),
                                step.bubblePredicted(),
                                step.pipelineEfficiency());
                case EvaluationMetrics evaluation ->
                        row(
                                out,
                                evaluation.step(),
                                evaluation.time(),
                                "",
                                evaluation.validationLoss(),
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "");
                case SkippedMetrics skipped ->
                        row(
                                out,
                                skipped.step(),
                                skipped.time(),
                                "",
                                "",
                                "",
                                0,
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "");
                case TaskMetrics _, RecoveryMetrics _ -> {} // not rows of these figures
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void row(Writer out, Object... cells) throws IOException {
        for (int i = 0; i < cells.length; i++) {
            boolean unknown = cells[i] instanceof Double number && !Double.isFinite(number);
            out.write(unknown ? "" : cells[i].toString());
            out.write(i < cells.length - 1 ? "," : "\r\n");
        }
    }
}
