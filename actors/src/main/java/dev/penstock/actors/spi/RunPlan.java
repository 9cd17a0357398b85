package dev.penstock.actors.spi;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Everything about a run that all its processes must agree on, built by each of them from the same
 * configuration. The hash is compared before a rank is hosted.
 *
 * @param runId unique for this run, for people and file names
 * @param hash over the resolved configuration and both programs
 * @param training the lowered, proved schedule of a training step
 * @param evaluation the lowered, proved forward-only schedule
 * @param grid how the ranks divide the work; programs are those of its pipeline
 * @param inFlight the proved capacity of every channel between ranks, in tensors
 * @param mirrors whether every rank's state is kept a second time by another rank
 * @param wholeReplicas whether ranks with the same parameters have all of their state (ZeRO 0), so
 *     that each is the others' mirror
 * @param ringFromBytes sums and gathers between processes of tensors of so many bytes or more go
 *     round; {@link CollectiveForm#NEVER} for none
 * @param codecs in which form boundary tensors travel
 * @param apart whether replicas take steps alone, so that they hold different parameters and
 *     exchange outer gradients
 * @param revision which of the run's plans this is; the hash is that of the first one
 */
public record RunPlan(
        String runId,
        String hash,
        Schedule training,
        Schedule evaluation,
        RankGrid grid,
        Map<ChannelKey, Integer> inFlight,
        RunSteps steps,
        Timeouts timeouts,
        boolean mirrors,
        boolean wholeReplicas,
        long ringFromBytes,
        ChannelCodecs codecs,
        boolean apart,
        PlanRevision revision) {
    public RunPlan {
        inFlight = Map.copyOf(inFlight);
        if (grid.pipeline() != training.shape().ranks()) {
            throw new IllegalArgumentException(
                    "a pipeline of %d ranks cannot run an order for %d"
                            .formatted(grid.pipeline(), training.shape().ranks()));
        }
    }

    /** The first plan of a run, with boundary tensors that travel as they are. */
    public RunPlan(
            String runId,
            String hash,
            Schedule training,
            Schedule evaluation,
            RankGrid grid,
            Map<ChannelKey, Integer> inFlight,
            RunSteps steps,
            Timeouts timeouts,
            boolean mirrors,
            boolean wholeReplicas,
            long ringFromBytes) {
        this(
                runId,
                hash,
                training,
                evaluation,
                grid,
                inFlight,
                steps,
                timeouts,
                mirrors,
                wholeReplicas,
                ringFromBytes,
                ChannelCodecs.NONE,
                false,
                PlanRevision.NONE);
    }

    /** Of a pipeline alone. */
    public RunPlan(
            String runId,
            String hash,
            Schedule training,
            Schedule evaluation,
            Map<ChannelKey, Integer> inFlight,
            RunSteps steps,
            Timeouts timeouts,
            boolean mirrors) {
        this(
                runId,
                hash,
                training,
                evaluation,
                RankGrid.pipeline(training.shape().ranks()),
                inFlight,
                steps,
                timeouts,
                mirrors,
                false,
                CollectiveForm.NEVER);
    }

    /** The same as a later plan of the run whose first plan this is the hash of. */
    public RunPlan as(PlanRevision later, String firstHash) {
        return new RunPlan(
                runId,
                firstHash,
                training,
                evaluation,
                grid,
                inFlight,
                steps,
                timeouts,
                mirrors,
                wholeReplicas,
                ringFromBytes,
                codecs,
                apart,
                later);
    }

    public int ranks() {
        return grid.ranks();
    }

    /** Other ranks that hold all that this one does, rising, if they are to serve as mirrors. */
    public List<Integer> copiesOf(int rank) {
        return replicasAreCopies()
                ? grid.replicaGroup(rank).stream().filter(other -> other != rank).toList()
                : List.of();
    }

    /** Whether another rank is one of a rank's {@link #copiesOf}. */
    public boolean isCopy(int rank, int other) {
        RankPlace place = grid.placeOf(rank);
        RankPlace there = grid.placeOf(other);
        return replicasAreCopies()
                && other != rank
                && there.pipeline() == place.pipeline()
                && there.tensor() == place.tensor();
    }

    private boolean replicasAreCopies() {
        return mirrors && wholeReplicas && !apart;
    }

    /** The stages that a rank holds, rising. */
    public List<Integer> stagesOf(int rank) {
        return training.placement().stagesOf(grid.placeOf(rank).pipeline());
    }

    /**
     * Returns the name of what a rank is, for actors and threads: {@code stage-3/shard-1}, or
     * {@code stage-0+7/shard-0} for a rank with two stages.
     */
    public String nameOf(int rank) {
        return stageName(rank) + "/shard-" + grid.placeOf(rank).tensor();
    }

    /** Returns the part of {@link #nameOf} that names the stages. */
    public String stageName(int rank) {
        return "stage-"
                + stagesOf(rank).stream().map(String::valueOf).collect(Collectors.joining("+"));
    }

    /** Returns what a rank runs in a pass of this kind. */
    public RankProgram program(StepKind kind, int rank) {
        return schedule(kind).program(grid.placeOf(rank).pipeline());
    }

    /** Who holds a stage in the pipeline that this rank belongs to. */
    public int holderOf(int stage, int rank) {
        return grid.sibling(rank, training.placement().rankOf(stage));
    }

    /** The program that a pass of this kind follows. */
    public Schedule schedule(StepKind kind) {
        return switch (kind) {
            case TRAIN -> training;
            case EVALUATE -> evaluation;
        };
    }
}
