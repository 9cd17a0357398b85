package dev.penstock.runtime.metrics;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Appends one line per committed step, applied or skipped, and per evaluation to {@code
 * metrics.jsonl}, each handed to the system before the event returns. Fields: {@code
 * docs/metrics.md}.
 *
 * <p>Never throws: while the disk is full or the file cannot be written, lines are lost, and the
 * first line after them says how many.
 */
public final class MetricsWriter implements RunListener, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(MetricsWriter.class);

    private final Path file;
    private final PipelineMeter meter;
    private final ConfiguredSteps steps;
    private final InstantSource clock;
    private final LineFile lines;
    private boolean uncut;
    private long lastStep;
    private long lastEvaluation = -1; // step 0 is the evaluation before the first step

    /**
     * Opens the file, and keeps only its lines up to a step.
     *
     * @param file {@code RunDirectory.metrics()}
     * @param resumedStep the step of the checkpoint that the run continues from; 0 for a new run
     * @param meter of the lowered training program
     */
    public MetricsWriter(
            Path file,
            long resumedStep,
            PipelineMeter meter,
            ConfiguredSteps steps,
            InstantSource clock) {
        this.file = file;
        this.meter = meter;
        this.steps = steps;
        this.clock = clock;
        this.lastStep = resumedStep;
        this.lines = new LineFile(file, this::gap, LOG);
        cut();
        lines.create();
    }

    /**
     * Writes the line of the step that the run goes on from if a process was killed before it did:
     * without times, which nobody measured.
     *
     * @param left where that process wrote down what it committed
     */
    public void catchUp(Path left) {
        CommittedStep.read(left)
                .filter(committed -> committed.step() == lastStep && !isWritten(lastStep))
                .ifPresent(committed -> write(untimed(committed)));
    }

    private boolean isWritten(long step) {
        try {
            return MetricsFile.lastStep(file) >= step;
        } catch (IOException e) {
            LOG.warn("cannot look for step {} in {}", step, file, e);
            return true;
        }
    }

    private StepMetrics untimed(CommittedStep committed) {
        return new StepMetrics(
                committed.step(),
                clock.instant(),
                steps.layout(),
                committed.loss(),
                committed.gradientNorm(),
                committed.clipFactor(),
                Double.NaN,
                steps.tokens().of(committed.step()),
                Double.NaN,
                Double.NaN,
                Double.NaN,
                Double.NaN,
                Map.of(),
                List.of(),
                List.of(),
                List.of(),
                List.of());
    }

    @Override
    public void onStep(StepReport report) {
        if (report.step() > lastStep) {
            lastStep = report.step();
            write(stepMetrics(report));
        }
    }

    @Override
    public void onOverflow(Overflow overflow) {
        if (overflow.step() > lastStep) {
            lastStep = overflow.step();
            write(new SkippedMetrics(clock.instant(), overflow));
        }
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        if (step > lastEvaluation) {
            lastEvaluation = step;
            write(new EvaluationMetrics(step, clock.instant(), loss, accuracy));
        }
    }

    /** Writes the figures of a task, of a step that was not taken back since. */
    public void onTask(TaskMetrics task) {
        if (task.step() <= lastStep) {
            write(task);
        }
    }

    /** Removes the lines of steps that will be repeated. */
    @Override
    public void onRecovery(RecoveryReport report) {
        if (report.fromStep() < lastStep) {
            lastStep = report.fromStep();
            lastEvaluation = -1;
            cut();
        }
        write(new RecoveryMetrics(clock.instant(), report));
    }

    @Override
    public void close() {
        lines.close();
    }

    /** Reads no more of the file than what it removes: this is the supervisor's thread. */
    private void cut() {
        lines.close();
        try {
            if (Files.isRegularFile(file) && MetricsFile.cutAfter(file, lastStep)) {
                lastEvaluation = lastStep;
            }
            uncut = false;
        } catch (IOException e) {
            if (!uncut) {
                LOG.warn("cannot remove steps from {}, which is tried again", file, e);
            }
            uncut = true;
        }
    }

    private void write(MetricsLine line) {
        if (uncut) {
            cut();
        }
        if (!uncut) {
            lines.append(MetricsJson.write(line).getBytes(StandardCharsets.US_ASCII));
        }
    }

    private byte[] gap(long missing) {
        return MetricsJson.gap(lastStep, clock.instant(), missing)
                .getBytes(StandardCharsets.US_ASCII);
    }

    private StepMetrics stepMetrics(StepReport report) {
        StepMeasure measure = meter.measure(report);
        List<Long> peaks = new ArrayList<>();
        List<Double> heap = new ArrayList<>();
        for (RankStep rank : report.ranks()) {
            peaks.add(rank.peakBytes());
            heap.add((double) rank.allocatedHeapBytes() / Math.max(1, rank.opStartNanos().length));
        }
        return new StepMetrics(
                report.step(),
                clock.instant(),
                steps.layout(),
                report.loss(),
                report.gradientNorm(),
                report.clipFactor(),
                steps.learningRate().applyAsDouble(report.update()),
                steps.tokens().of(report.step()),
                MetricsJson.millis(report.endNanos() - report.startNanos()),
                measure.times().bubble(),
                measure.ideal().bubble(),
                measure.efficiency(),
                rankMillis(measure.times()),
                peaks,
                report.ranks().stream().map(RankStep::uses).toList(),
                report.ranks().stream().map(RankStep::sent).toList(),
                heap);
    }

    private static Map<Activity, List<Double>> rankMillis(StepTimes times) {
        Map<Activity, List<Double>> millis = new EnumMap<>(Activity.class);
        for (Activity activity : Activity.values()) {
            List<Double> ranks = new ArrayList<>();
            for (int rank = 0; rank < times.ranks().size(); rank++) {
                ranks.add(MetricsJson.millis(times.nanos(rank, activity)));
            }
            millis.put(activity, ranks);
        }
        return millis;
    }
}
