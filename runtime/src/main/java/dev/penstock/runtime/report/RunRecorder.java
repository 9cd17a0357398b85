package dev.penstock.runtime.report;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.Notices;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.StepTimes;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.MeasuredMeans;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileLine;
import dev.penstock.schedules.simulate.ProfileText;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Keeps what the report needs and metrics.jsonl does not hold: the devices, the op times of a few
 * steps (those asked for, and the most recent ones), checkpoints and stalls. Thread-safe.
 */
public final class RunRecorder implements RunListener {
    private static final int RECENT = 15;

    /** So many steps make no profile without their first one. */
    private static final int WARM = 3;

    private final Set<Long> wanted;
    private final SortedMap<Long, StepReport> kept = new TreeMap<>();
    private final ArrayDeque<StepReport> recent = new ArrayDeque<>();
    private final Map<String, String> events = new LinkedHashMap<>();
    private List<String> devices = List.of();
    private String fingerprint = "";
    private long checkpoints;
    private long checkpointNanos;
    private long failedCheckpoints;
    private long saved;
    private @Nullable String unsaved;
    private long stalls;
    private long overflows;
    private long recoveries;

    /**
     * @param wanted steps to keep whatever happens; see {@link #defaultSteps}
     */
    public RunRecorder(Collection<Long> wanted) {
        this.wanted = Set.copyOf(wanted);
    }

    /** The second step (the first one warms up) and the one in the middle. */
    public static List<Long> defaultSteps(long firstStep, long lastStep) {
        return List.of(firstStep + 2, firstStep + (lastStep - firstStep) / 2 + 1);
    }

    @Override
    public synchronized void onStep(StepReport report) {
        if (wanted.contains(report.step())) {
            kept.put(report.step(), report);
        }
        recent.addLast(report);
        if (recent.size() > RECENT) {
            recent.removeFirst();
        }
    }

    @Override
    public synchronized void onOpened(List<String> openedDevices, String kernels) {
        devices = List.copyOf(openedDevices);
        fingerprint = kernels;
    }

    @Override
    public synchronized void onCheckpoint(long step, long bytes, long nanos) {
        checkpoints++;
        saved = step;
        unsaved = null;
        checkpointNanos += nanos;
        events.put(
                "checkpoints",
                "%d, the last one after step %d: %s; %s each"
                        .formatted(
                                checkpoints,
                                step,
                                Quantities.bytes(bytes),
                                Quantities.nanos((double) checkpointNanos / checkpoints)));
    }

    @Override
    public synchronized void onCheckpointFailed(long step, String reason) {
        failedCheckpoints++;
        unsaved = "not saved after step %d: %s".formatted(step, reason);
        events.put(
                "failed checkpoints",
                "%d, the last one after step %d: %s".formatted(failedCheckpoints, step, reason));
    }

    /** The same of a log, in its words. */
    synchronized void notSaved(String told) {
        failedCheckpoints++;
        unsaved = told;
        events.put("failed checkpoints", "%d, the last one: %s".formatted(failedCheckpoints, told));
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        recovered(Notices.recovery(report), report.fromStep());
    }

    /** Steps that are done again are forgotten. */
    synchronized void recovered(String told, long fromStep) {
        recoveries++;
        recent.removeIf(step -> step.step() > fromStep);
        kept.tailMap(fromStep + 1).clear();
        events.put("recoveries", "%d, the last one: %s".formatted(recoveries, told));
    }

    @Override
    public void onOverflow(Overflow overflow) {
        skipped(overflow.words());
    }

    synchronized void skipped(String told) {
        overflows++;
        events.put("skipped steps", "%d, the last one: %s".formatted(overflows, told));
    }

    @Override
    public synchronized void onStall(String report) {
        stalls++;
        events.put("stalls", "%d, the last one: %s".formatted(stalls, report));
    }

    /** From the next step on, ops are those of another program: times of the last are forgotten. */
    public synchronized void followOther() {
        recent.clear();
        kept.clear();
    }

    @Override
    public synchronized void onPlanNote(String note) {
        events.merge("plan", note, (a, b) -> a + "; " + b);
    }

    @Override
    public void onStraggler(int rank, long step, double factor) {
        slow(Notices.straggler(rank, step, factor));
    }

    synchronized void slow(String told) {
        events.merge("stragglers", told, (a, b) -> a + "; " + b);
    }

    /** The last step that was done; empty before the first one, and where only a log tells. */
    synchronized OptionalLong lastStep() {
        return recent.isEmpty() ? OptionalLong.empty() : OptionalLong.of(recent.getLast().step());
    }

    /** Entry r describes the device of rank r; empty before they were opened. */
    synchronized List<String> devices() {
        return devices;
    }

    /** Of the kernels; empty before the devices were opened. */
    synchronized String fingerprint() {
        return fingerprint;
    }

    /** Why the newest checkpoint is not the one that was last asked for; empty if it is. */
    public synchronized Optional<String> unsaved() {
        return Optional.ofNullable(unsaved)
                .map(
                        reason ->
                                reason
                                        + (saved == 0
                                                ? "; none was since it began or was resumed"
                                                : "; its newest checkpoint is of step " + saved));
    }

    /** What happened beside steps: a name and what there is to say. */
    synchronized Map<String, String> events() {
        return Collections.unmodifiableMap(new LinkedHashMap<>(events));
    }

    /** The steps for the trace file, rising: those asked for and the last one. */
    public synchronized List<StepReport> traced() {
        SortedMap<Long, StepReport> steps = new TreeMap<>(kept);
        if (!recent.isEmpty()) {
            steps.put(recent.getLast().step(), recent.getLast());
        }
        return List.copyOf(steps.values());
    }

    /** Of everything that was kept, the step of median duration; empty before the first step. */
    public synchronized Optional<StepReport> typical() {
        List<StepReport> byDuration =
                all().stream().sorted(Comparator.comparingLong(RunRecorder::nanos)).toList();
        return byDuration.isEmpty()
                ? Optional.empty()
                : Optional.of(byDuration.get((byDuration.size() - 1) / 2));
    }

    /**
     * What ops cost in the median of recent steps, on the mean of all pipelines: the text of a
     * profile.
     *
     * @param mixedLengths whether its times are of micro-batches of several lengths
     */
    synchronized String profile(Schedule schedule, RankGrid grid, boolean mixedLengths) {
        var means = new MeasuredMeans();
        for (StepReport report : warm(List.copyOf(recent))) {
            means.add(StepTimes.of(schedule, grid, report).pipelines());
            means.addUpdate(StepTimes.updateNanos(report));
        }
        List<ProfileLine> lines = new ArrayList<>(means.lines());
        if (mixedLengths) {
            lines.addFirst(new ProfileLine.MixedLengths());
        }
        return ProfileText.print(new ProfileCosts(lines));
    }

    /** Steps without the first one, which may have warmed up, where enough others are left. */
    static List<StepReport> warm(List<StepReport> steps) {
        return steps.size() > WARM ? steps.subList(1, steps.size()) : steps;
    }

    /** The most recent steps, rising. */
    synchronized List<StepReport> recent() {
        return List.copyOf(recent);
    }

    /** How many steps {@link #typical} chooses from. */
    public synchronized int size() {
        return all().size();
    }

    private Collection<StepReport> all() {
        SortedMap<Long, StepReport> steps = new TreeMap<>(kept);
        recent.forEach(report -> steps.put(report.step(), report));
        return steps.values();
    }

    private static long nanos(StepReport report) {
        return report.endNanos() - report.startNanos();
    }
}
