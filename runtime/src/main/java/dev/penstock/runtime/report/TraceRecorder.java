package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

/** Keeps the op times of a few steps: those asked for, and the most recent ones. Thread-safe. */
public final class TraceRecorder implements RunListener {
    private static final int RECENT = 15;

    private final Set<Long> wanted;
    private final SortedMap<Long, StepReport> kept = new TreeMap<>();
    private final ArrayDeque<StepReport> recent = new ArrayDeque<>();

    /**
     * @param wanted steps to keep whatever happens; see {@link #defaultSteps}
     */
    public TraceRecorder(Collection<Long> wanted) {
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
    public void onEvaluation(long step, double loss) {}

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {}

    @Override
    public void onCheckpointFailed(long step, String reason) {}

    @Override
    public void onStall(String report) {}

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
                all().stream().sorted(Comparator.comparingLong(TraceRecorder::nanos)).toList();
        return byDuration.isEmpty()
                ? Optional.empty()
                : Optional.of(byDuration.get((byDuration.size() - 1) / 2));
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
