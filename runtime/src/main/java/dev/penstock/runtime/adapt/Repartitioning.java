package dev.penstock.runtime.adapt;

import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.simulate.MeasuredMeans;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Cuts a run's layers into other stages when its ranks compute at other speeds than the plan
 * assumes. It looks at the computations of some steps, whose medians ignore a disturbed step; of
 * what they took follow the speed of every rank and the stages that would suit these speeds. Those
 * are taken if a simulated step wins more than a margin, and all steps left win more than the
 * change costs.
 *
 * <p>Not thread-safe: confined to the listener's thread.
 */
public final class Repartitioning implements RunListener, PlanReaction {
    private static final Logger LOG = LoggerFactory.getLogger(Repartitioning.class);

    /** After a start and after every recovery: code is not compiled, and caches are cold. */
    private static final int SETTLING = 5;

    /** What all ranks begin anew with, beside their checkpoint. */
    private static final long RESTART_NANOS = 1_000_000_000L;

    private final int every;
    private final double margin;
    private final PipelineMeter meter;
    private final Reviser reviser;
    private SpeedModel model;
    private MeasuredMeans means = new MeasuredMeans();
    private int looked;
    private int settling = SETTLING;
    private long checkpointNanos;
    private int revisions;
    private @Nullable StagePartition refused;
    private @Nullable RunPlan wanted;

    /** Makes the plan of other stages. */
    public interface Reviser {
        /**
         * Returns the plan with these stages; empty if ranks cannot hold them.
         *
         * @param number of the plan among those of the run
         * @param reason for people
         */
        Optional<RunPlan> revise(StagePartition partition, int number, String reason);

        /** Returns what is known of a plan's stages. */
        SpeedModel model(RunPlan plan);
    }

    /**
     * @param every steps between two looks
     * @param margin share of a step that other stages must win
     * @param meter of the run's steps
     */
    public Repartitioning(
            int every, double margin, PipelineMeter meter, SpeedModel model, Reviser reviser) {
        this.every = every;
        this.margin = margin;
        this.meter = meter;
        this.model = model;
        this.reviser = reviser;
    }

    @Override
    public Optional<RunPlan> wanted() {
        var told = Optional.ofNullable(wanted);
        wanted = null;
        return told;
    }

    @Override
    public void onRevised(RunPlan revised, long completed) {
        model = reviser.model(revised);
        revisions = revised.revision().number();
        begin();
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        begin();
    }

    private void begin() {
        means = new MeasuredMeans();
        looked = 0;
        settling = SETTLING;
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {
        checkpointNanos = nanos;
    }

    @Override
    public void onStep(StepReport report) {
        if (settling > 0) {
            settling--;
            return;
        }
        means.add(meter.measure(report).times().pipelines());
        looked++;
        if (looked == every) {
            look(report.step());
            means = new MeasuredMeans();
            looked = 0;
        }
    }

    private void look(long step) {
        SpeedModel.Proposal best = model.propose(means.lines());
        long won = best.nanosNow() - best.nanosThen();
        double left = model.lastStep() - step;
        if (best.partition().equals(refused)
                || won <= margin * best.nanosNow()
                || won * left <= 2 * checkpointNanos + RESTART_NANOS) {
            return;
        }
        Optional<RunPlan> revised = 
                reviser.revise(best.partition(), revisions + 1, best.words());
        if (revised.isEmpty()) {
            LOG.info("{}, but a rank cannot hold its part", best.words());
            refused = best.partition();
        } else {
            wanted = revised.get();
        }
    }
}
