package dev.penstock.actors.fault;

import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.fault.Fault.FailDisk;
import dev.penstock.actors.fault.Fault.HarmFrames;
import dev.penstock.actors.fault.Fault.InjectNan;
import dev.penstock.actors.fault.Fault.KillRank;
import dev.penstock.actors.fault.Fault.PauseRank;
import dev.penstock.actors.fault.Fault.SlowStage;
import dev.penstock.actors.fault.Fault.TearCheckpoint;
import dev.penstock.actors.spi.RankPlace;
import java.io.IOException;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the faults of a plan happen in this process. Immutable; what it hands out belongs to the
 * thread that asks.
 */
public final class FaultInjector {
    /** No faults. */
    public static final FaultInjector NONE =
            new FaultInjector(FaultPlan.NONE, (_, _) -> false, ProcessHarm.ONE_THREAD);

    private static final Logger LOG = LoggerFactory.getLogger(FaultInjector.class);

    private final FaultPlan plan;
    private final FiredFaults fired;
    private final ProcessHarm harm;
    private final SeededFrameFaults frames;

    /** A fault and its index in the plan. */
    record Numbered<F extends Fault>(int index, F fault) {}

    public FaultInjector(FaultPlan plan, FiredFaults fired, ProcessHarm harm) {
        this.plan = plan;
        this.fired = fired;
        this.harm = harm;
        this.frames =
                new SeededFrameFaults(
                        plan.faults().stream()
                                .filter(HarmFrames.class::isInstance)
                                .map(HarmFrames.class::cast)
                                .toList());
    }

    /**
     * What may go wrong on a rank.
     *
     * @param place what the rank is
     * @param stages of the rank
     */
    public RankFaults forRank(int rank, RankPlace place, List<Integer> stages) {
        var kills = numbered(KillRank.class, kill -> kill.rank() == rank);
        var pauses = numbered(PauseRank.class, pause -> pause.rank() == rank);
        boolean firstPart = place.tensor() == 0 && place.context() == 0;
        var poisons =
                numbered(
                        InjectNan.class,
                        nan ->
                                firstPart
                                        && nan.replica() == place.data()
                                        && stages.contains(nan.stage()));
        var slow =
                numbered(
                        SlowStage.class,
                        stage -> stage.isOf(place.data()) && stages.contains(stage.stage()));
        boolean none =
                kills.isEmpty()
                        && pauses.isEmpty()
                        && poisons.isEmpty()
                        && slow.isEmpty()
                        && !frames.harm();
        return none ? RankFaults.NONE : new InjectedRankFaults(this, kills, pauses, poisons, slow);
    }

    /** What may become of the frames that this process sends. */
    public FrameFaults forFrames() {
        return frames.harm() ? frames : FrameFaults.NONE;
    }

    /** What may go wrong with checkpoints that this process writes. */
    public SaveFaults forSaves() {
        var full = numbered(FailDisk.class, _ -> true);
        var torn = numbered(TearCheckpoint.class, _ -> true);
        return full.isEmpty() && torn.isEmpty() ? SaveFaults.NONE : new InjectedSaves(full, torn);
    }

    private <F extends Fault> List<Numbered<F>> numbered(Class<F> type, Predicate<F> wanted) {
        return IntStream.range(0, plan.faults().size())
                .filter(i -> type.isInstance(plan.faults().get(i)))
                .mapToObj(i -> new Numbered<>(i, type.cast(plan.faults().get(i))))
                .filter(numbered -> wanted.test(numbered.fault()))
                .toList();
    }

    /** Whether an event that is due has not happened yet; if so it counts as having happened. */
    boolean claim(Numbered<?> numbered) {
        boolean first = fired.claim(numbered.index(), numbered.fault());
        if (first) {
            LOG.warn("fault {}: {}", numbered.index(), numbered.fault().describe());
        }
        return first;
    }

    /** The ranks of this process work on a training step; -1 for anything else. */
    void atStep(long step) {
        frames.atStep(step);
    }

    ProcessHarm harm() {
        return harm;
    }

    private final class InjectedSaves implements SaveFaults {
        private final List<Numbered<FailDisk>> full;
        private final List<Numbered<TearCheckpoint>> torn;

        InjectedSaves(List<Numbered<FailDisk>> full, List<Numbered<TearCheckpoint>> torn) {
            this.full = full;
            this.torn = torn;
        }

        @Override
        public void at(SavePoint point, long step) {
            for (var each : torn) {
                TearCheckpoint tear = each.fault();
                if (tear.step() == step && tear.point() == point && claim(each)) {
                    harm.kill();
                }
            }
        }

        @Override
        public void beforeWrite(long step, long written, long count) throws IOException {
            for (var each : full) {
                FailDisk disk = each.fault();
                boolean due = disk.step() == step && written + count > disk.afterBytes();
                if (due && claim(each)) {
                    throw new IOException(
                            "No space left on device (injected after %d bytes)".formatted(written));
                }
            }
        }
    }
}
