package dev.penstock.benchmarks;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.StepReport;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** Records when steps were committed and when the run recovered. Thread-safe. */
final class RecoverySteps implements RunListener {
    private static final long PATIENCE_MS = 120_000;

    /**
     * A recovery and what followed.
     *
     * @param nextStepNanos when the first step after it was committed, on the clock of nanoTime
     */
    record Recovery(RecoveryReport report, long nextStepNanos) {}

    private final List<Long> durations = new ArrayList<>();
    private final List<Recovery> recoveries = new ArrayList<>();
    private @Nullable RecoveryReport pending;
    private long steps;
    private long newest;
    private long spares;
    private boolean ended;

    @Override
    public synchronized void onMembers(List<RunMember> members) {
        spares = members.stream().filter(member -> member.rank().isEmpty()).count();
        notifyAll();
    }

    @Override
    public synchronized void onStep(StepReport report) {
        long now = System.nanoTime();
        steps++;
        newest = report.step();
        durations.add(report.endNanos() - report.startNanos());
        RecoveryReport recovery = pending;
        if (recovery != null) {
            recoveries.add(new Recovery(recovery, now));
            pending = null;
        }
        notifyAll();
    }

    @Override
    public synchronized void onRecovery(RecoveryReport report) {
        pending = report;
    }

    /** Marks the run as ended, which wakes all waiters. */
    synchronized void end() {
        ended = true;
        notifyAll();
    }

    synchronized long recoveries() {
        return recoveries.size();
    }

    /** The number of the last committed step; decreases when the run goes back. */
    synchronized long newest() {
        return newest;
    }

    /** Lets the run continue for this many seconds; fails if it ends earlier. */
    synchronized void pause(double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        try {
            for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
                if (ended) {
                    throw new IllegalStateException("the run ended too early");
                }
                wait(left / 1_000_000, (int) (left % 1_000_000));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }

    synchronized double medianStepNanos() {
        return durations.stream().sorted().skip(durations.size() / 2).findFirst().orElse(0L);
    }

    /** Waits for this many more steps. */
    synchronized void awaitMore(int more) {
        long wanted = steps + more;
        await(() -> steps >= wanted, "%d steps".formatted(more));
    }

    /** Waits until this many spare processes have joined. */
    synchronized void awaitSpares(int wanted) {
        await(() -> spares >= wanted, "%d spare processes".formatted(wanted));
    }

    /** Waits for the first step after the next recovery. */
    synchronized Recovery awaitRecovery(long before) {
        await(() -> recoveries.size() > before, "a recovery");
        return recoveries.get((int) before);
    }

    private void await(BooleanSupplier reached, String what) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        try {
            while (!reached.getAsBoolean()) {
                long left = deadline - System.currentTimeMillis();
                if (ended || left <= 0) {
                    throw new IllegalStateException(
                            (ended ? "the run ended before " : "waited too long for ") + what);
                }
                wait(left);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for " + what, e);
        }
    }
}
