package dev.penstock.runtime.report;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.events.EventLogReader;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.simulate.CostModel;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What a run's event log knows of what its process would have reported at its end: for a process
 * that was killed, or is still at work. Of the steps whose op times the log has; what ranks hold
 * memory for and send is predicted by the process alone, and not told.
 */
public final class RecordedRun {
    private static final String ALL_USES = "all uses";

    private final RunEvent.Began began;
    private final RunRecorder recorder;
    private final RecoveryBook recoveries = new RecoveryBook(InstantSource.system());
    private RunEvent.@Nullable Stepped stepped;
    private List<Long> peaks = List.of();
    private RunEvent.@Nullable Ended ended;
    private long lastSign;

    private RecordedRun(RunEvent.Began began) {
        this.began = began;
        this.lastSign = began.time();
        this.recorder =
                new RunRecorder(RunRecorder.defaultSteps(began.resumedStep(), began.lastStep()));
    }

    /**
     * Reads a log; of a run that was resumed, what its last process wrote.
     *
     * @return empty if the log is not there, or nothing had begun
     */
    public static Optional<RecordedRun> read(Path events) throws IOException {
        List<RecordedRun> runs = new ArrayList<>();
        new EventLogReader(events)
                .poll(
                        event -> {
                            if (event instanceof RunEvent.Began begin) {
                                runs.clear();
                                runs.add(new RecordedRun(begin));
                            } else if (!runs.isEmpty()) {
                                runs.getLast().apply(event);
                            }
                        });
        return runs.stream().findFirst();
    }

    private void apply(RunEvent event) {
        lastSign = Math.max(lastSign, event.time());
        switch (event) {
            case RunEvent.Opened(_, var devices, var fingerprint) ->
                    recorder.onOpened(devices, fingerprint);
            case RunEvent.Stepped step -> {
                stepped = step;
                peaks = step.peakBytes().isEmpty() ? peaks : step.peakBytes();
            }
            case RunEvent.OpTimes times -> {
                RunEvent.Stepped step = stepped;
                if (step != null && step.step() == times.step()) {
                    recorder.onStep(report(step, times));
                }
            }
            case RunEvent.Saved(_, long step, long bytes, long micros) ->
                    recorder.onCheckpoint(step, bytes, nanos(micros));
            case RunEvent.Recovered recovered -> recovered(recovered);
            case RunEvent.Noted(_, var kind, var text) -> {
                switch (kind) {
                    case SAVE_FAILED -> recorder.notSaved(text);
                    case STALL -> recorder.onStall(text);
                    case STRAGGLER -> recorder.slow(text);
                    case OVERFLOW -> recorder.skipped(text);
                    case PLAN -> recorder.onPlanNote(text);
                    case RECOVERING, LEFT_OUT -> {} // a recovery follows; nothing is known
                }
            }
            case RunEvent.Ended end -> ended = end;
            case RunEvent.Began _,
                    RunEvent.Evaluated _,
                    RunEvent.Verified _,
                    RunEvent.Members _,
                    RunEvent.Leases _,
                    RunEvent.Links _ -> {} // in metrics.jsonl, or not in a report
        }
    }

    private void recovered(RunEvent.Recovered recovered) {
        recorder.recovered(recovered.told(), recovered.fromStep());
        recoveries.add(RecoveryBook.Entry.of(recovered));
    }

    /** On a clock that began with the process. */
    private StepReport report(RunEvent.Stepped step, RunEvent.OpTimes times) {
        long end = Duration.ofMillis(step.time() - began.time()).toNanos();
        long start = end - nanos(step.stepMicros());
        List<RankStep> ranks =
                IntStream.range(0, times.ranks().size())
                        .mapToObj(rank -> rank(rank, times.ranks().get(rank), start))
                        .toList();
        return new StepReport(
                step.step(), step.loss(), step.gradientNorm(), Double.NaN, start, end, ranks);
    }

    private RankStep rank(int rank, RunEvent.OpTimes.Rank times, long start) {
        return new RankStep(
                rank,
                sinceBegan(times.starts(), start),
                sinceBegan(times.ends(), start),
                start + nanos(times.updateStart()),
                start + nanos(times.updateEnd()),
                rank < peaks.size() ? peaks.get(rank) : 0,
                List.of(),
                0,
                List.of(),
                StepTraffic.NOTHING,
                sinceBegan(times.collectives(), 0),
                sinceBegan(times.copies(), 0));
    }

    private static long[] sinceBegan(int[] micros, long start) {
        return Arrays.stream(micros).mapToLong(each -> start + nanos(each)).toArray();
    }

    private static long nanos(long micros) {
        return 1000 * micros;
    }

    /**
     * The report of it.
     *
     * @param directory of the run
     * @param faults what became of the faults on purpose, given the recoveries
     * @param links adds the time of tensors under way to the costs of its computations
     * @throws ScheduleTextException if this version cannot read the log's program
     */
    public RunReport report(
            RunDirectory directory,
            Function<List<RecoveryBook.Entry>, List<FaultOutcome>> faults,
            BiFunction<CostModel, Schedule, CostModel> links) {
        List<MemoryPlan> memory =
                began.plannedBytes().stream()
                        .map(bytes -> List.of(new MemoryUse(ALL_USES, bytes)))
                        .map(proved -> new MemoryPlan(List.of(), proved))
                        .toList();
        var facts =
                new RunFacts(
                        began.name(),
                        began.configuration(),
                        ScheduleText.parse(began.schedule()),
                        began.grid(),
                        began.lastStep(),
                        began.tokensPerStep(),
                        began.parameters(),
                        memory,
                        List.of(),
                        () -> faults.apply(recoveries.all()),
                        links,
                        began.environment());
        return new RunReport(directory, facts, recorder);
    }

    /** Whether its process came to its end, and said so. */
    public boolean hasEnded() {
        return ended != null;
    }

    /**
     * How it stands.
     *
     * @param underWay whether its process is at work
     */
    public RunEnding ending(boolean underWay) {
        RunEvent.Ended end = ended;
        RunEvent.Stepped last = stepped;
        long step = last == null ? began.resumedStep() : last.step();
        Duration took = Duration.ofMillis(lastSign - began.time());
        if (end == null) {
            String told =
                    underWay
                            ? "under way after step " + step
                            : "stopped without a final record (killed?) after step %d; last sign of life at %s"
                                    .formatted(step, Instant.ofEpochMilli(lastSign));
            return new RunEnding(told, false, began.resumedStep(), took, Optional.empty());
        }
        RunOutcome outcome =
                switch (end.outcome()) {
                    case COMPLETED -> new RunOutcome.Completed(end.step());
                    case INTERRUPTED -> new RunOutcome.Interrupted(end.step());
                    case FAILED -> new RunOutcome.Failed(end.step(), end.reason());
                };
        return RunEnding.of(outcome, took, Optional.empty()).since(began.resumedStep());
    }
}
