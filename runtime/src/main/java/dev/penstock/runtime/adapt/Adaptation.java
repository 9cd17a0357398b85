package dev.penstock.runtime.adapt;

import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.MeasuredMeans;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Cuts a run's layers into other stages, takes another order, or gives micro-batches to other
 * replicas, when the run's ranks compute at other speeds than the plan assumes. It looks at the
 * computations of some steps, whose medians ignore a disturbed step; of what they took follow the
 * speed of every rank and the plan that would suit these speeds. That is taken if a simulated step
 * wins more than a margin, and all steps left win more than the change costs.
 *
 * <p>Where ranks come to live together, or apart again, a plan that was followed when they last
 * lived like that is taken at once.
 *
 * <p>Not thread-safe: confined to the listener's thread.
 */
public final class Adaptation implements RunListener, PlanReaction {
    /** After a start and after every recovery: code is not compiled, and caches are cold. */
    private static final int SETTLING = 5;

    /** No step comes before the recovery with which the ranks follow another plan. */
    private static final int REVISED = Integer.MAX_VALUE;

    private final int every;
    private final double margin;
    private final boolean atOnce;
    private final PipelineMeter meter;
    private final Reviser reviser;
    private SpeedModel model;

    /** The most layers of each stage, as far as plans were too large for it. */
    private List<Integer> room;

    private MeasuredMeans means = new MeasuredMeans();
    private int looked;
    private int settling = SETTLING;
    private long checkpointNanos;

    /** What all ranks took to begin anew, beside their checkpoint. */
    private long restartNanos = 1_000_000_000L;

    /** Simulated computations of a step before the last change; 0 if nothing has changed. */
    private long nanosBefore;

    /** By rank, how many live in its process; empty as long as nobody has said it. */
    private List<Integer> together = List.of();

    /** The same when the run, or this process's part of it, began. */
    private List<Integer> togetherAtFirst = List.of();

    /** By how many ranks live together, the settings of the plan that they followed last. */
    private final Map<List<Integer>, List<String>> followed = new HashMap<>();

    private List<String> settings = List.of();
    private RunListener told = new RunListener() {};
    private int revisions;
    private @Nullable String refused;
    private @Nullable RunPlan wanted;

    /** What was wanted last. */
    private @Nullable PlanRevision wished;

    /** The same as {@link #nanosBefore}, of a change that may not come: nothing may be saved. */
    private long nanosWanted;

    /** Makes other plans of a run. */
    public interface Reviser {
        /**
         * Returns the plan of these settings; empty if there is none.
         *
         * @param number of the plan among those of the run
         * @param settings as on a command line
         * @param reason for people
         */
        Optional<Revised> revise(int number, List<String> settings, String reason);

        /** Returns what is known of a plan's stages. */
        SpeedModel model(PlanRevision plan);
    }

    /**
     * A plan that may be followed if there is room for it.
     *
     * @param fits whether there is room for what its ranks would hold
     * @param crowded the stages of ranks that cannot hold their part, rising
     */
    public record Revised(RunPlan plan, boolean fits, List<Integer> crowded) {
        public Revised {
            crowded = List.copyOf(crowded);
        }
    }

    /**
     * @param every steps between two looks
     * @param margin share of a step that another plan must win
     * @param atOnce whether to look from the beginning; otherwise only when ranks live elsewhere
     *     than at first
     * @param meter of the run's steps
     */
    public Adaptation(
            int every,
            double margin,
            boolean atOnce,
            PipelineMeter meter,
            SpeedModel model,
            Reviser reviser) {
        this.every = every;
        this.margin = margin;
        this.atOnce = atOnce;
        this.meter = meter;
        this.model = model;
        this.room = model.anyLayers();
        this.reviser = reviser;
    }

    /**
     * Begins to watch a run, which another process may have led before.
     *
     * @param listener hears what the changes win
     * @param revision the plan that the run follows
     */
    public void begin(RunListener listener, PlanRevision revision) {
        told = listener;
        follow(revision);
    }

    private void follow(PlanRevision revision) {
        model = reviser.model(revision);
        revisions = revision.number();
        settings = revision.settings();
    }

    @Override
    public Optional<RunPlan> wanted() {
        var told = Optional.ofNullable(wanted);
        wanted = null;
        return told;
    }

    @Override
    public void onRevised(PlanRevision revision, Schedule training, long completed) {
        follow(revision);
        followed.put(together, settings);
        if (revision.equals(wished)) {
            nanosBefore = nanosWanted;
            settling = REVISED;
        } else { // ranks died, or are back
            nanosBefore = 0;
        }
    }

    @Override
    public void onPlaced(List<Integer> homes) {
        List<Integer> before = together;
        together = homes.stream().map(home -> Collections.frequency(homes, home)).toList();
        if (before.isEmpty()) {
            togetherAtFirst = together;
        }
        List<String> known = followed.computeIfAbsent(together, _ -> settings);
        if (!together.equals(before) && !known.equals(settings)) {
            wanted =
                    reviser.revise(revisions + 1, known, "as before, when ranks lived like this")
                            .filter(Revised::fits)
                            .map(Revised::plan)
                            .orElse(null);
            wished = wanted == null ? null : wanted.revision();
            nanosWanted = 0; // what it wins is not known
        }
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        if (settling == REVISED) {
            restartNanos = report.resumeNanos();
        }
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
            if (atOnce || !together.equals(togetherAtFirst)) {
                look(report.step());
            }
            means = new MeasuredMeans();
            looked = 0;
        }
    }

    private void look(long step) {
        Measured measured = Measured.of(means);
        SpeedModel.Proposal best = model.propose(measured, room);
        if (nanosBefore > 0) {
            told.onPlanNote(
                    "since the change of plan %d, the computations of a step take %.3f s instead of %.3f s"
                            .formatted(revisions, best.nanosNow() / 1e9, nanosBefore / 1e9));
            nanosBefore = 0;
        }
        while (isWorthIt(best, step)) {
            Optional<Revised> revised = reviser.revise(revisions + 1, settings(best), best.words());
            if (revised.stream().anyMatch(Revised::fits)) {
                wanted = revised.get().plan();
                wished = wanted.revision();
                nanosWanted = best.nanosNow();
                return;
            }
            List<Integer> crowded = revised.map(Revised::crowded).orElse(List.of());
            List<Integer> less = roomBeside(best.partition(), crowded);
            if (less.equals(room)) { // it is not the layers
                told.onPlanNote(
                        best.words() + "; but there is no room for what its ranks would hold");
                refused = settings(best).toString();
                return;
            }
            room = less;
            best = model.propose(measured, room);
        }
    }

    private boolean isWorthIt(SpeedModel.Proposal best, long step) {
        long won = best.nanosNow() - best.nanosThen();
        double left = model.lastStep() - step;
        return !settings(best).toString().equals(refused)
                && won > margin * best.nanosNow()
                && won * left > (best.keepsStages() ? 0 : 2 * checkpointNanos) + restartNanos;
    }

    /** What is left of the room if these stages have none for what this partition gives them. */
    private List<Integer> roomBeside(StagePartition tooLarge, List<Integer> crowded) {
        List<Integer> less = new ArrayList<>(room);
        for (int stage : crowded) {
            int given = tooLarge.layersPerStage().get(stage);
            if (given > model.partition().layersPerStage().get(stage)) {
                less.set(stage, Math.min(less.get(stage), given - 1));
            }
        }
        return less;
    }

    /** All that differs from the configuration: a later plan does not build on an earlier one. */
    private static List<String> settings(SpeedModel.Proposal plan) {
        List<String> settings =
                new ArrayList<>(
                        List.of(
                                "pipeline.partition=" + plan.partition().layersPerStage(),
                                "schedule.kind=" + plan.order().kind(),
                                "schedule.costs=" + plan.order().costs()));
        plan.order()
                .wiring()
                .ifPresent(wiring -> settings.add("schedule.without=" + wiring.absent()));
        return settings;
    }
}
