package dev.penstock.actors.spi;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.Wiring;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Everything about a run that all its processes must agree on, built by each of them from the same
 * configuration. The hash is compared before a rank is hosted.
 *
 * @param runId unique for this run, for people and file names
 * @param hash over the resolved configuration and both programs
 * @param training the lowered, proved schedule of a training step; a wired one has a program for
 *     every rank of all replicas
 * @param evaluation the lowered, proved forward-only schedule, wired if the other is
 * @param grid how the ranks divide the work; programs are those of its pipeline unless they are
 *     wired
 * @param inFlight the proved capacity of every channel between ranks, in tensors
 * @param mirrors whether every rank's state is kept a second time by another rank
 * @param wholeReplicas whether ranks with the same parameters have all of their state (ZeRO 0), so
 *     that each is the others' mirror
 * @param ringFromBytes sums and gathers between processes of tensors of so many bytes or more go
 *     round; {@link CollectiveForm#NEVER} for none
 * @param codecs in which form boundary tensors travel
 * @param apartAfter the step from whose end on replicas take steps alone, so that they hold
 *     different parameters and exchange outer gradients; {@link #NEVER}: they never do
 * @param revision which of the run's plans this is; the hash is that of the first one
 * @param layout what stages in memory depend on: see {@link #layout()}; empty: they are those of
 *     this revision alone
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
        long apartAfter,
        PlanRevision revision,
        String layout) {
    /** Replicas sum their gradients in every step. */
    public static final long NEVER = Long.MAX_VALUE;

    public RunPlan {
        inFlight = Map.copyOf(inFlight);
        if (grid.pipeline() != training.shape().pipelineRanks()) {
            throw new IllegalArgumentException(
                    "a pipeline of %d ranks cannot run an order for %d"
                            .formatted(grid.pipeline(), training.shape().pipelineRanks()));
        }
        boolean wired = training.placement().wiring().isPresent();
        if (wired && training.shape().ranks() != grid.ranks()) {
            throw new IllegalArgumentException(
                    "a wired order of %d ranks cannot run on %d; replicas are all that it divides"
                            .formatted(training.shape().ranks(), grid.ranks()));
        }
    }

    /** A plan whose stages are its own. */
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
            long ringFromBytes,
            ChannelCodecs codecs,
            long apartAfter,
            PlanRevision revision) {
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
                codecs,
                apartAfter,
                revision,
                "");
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
                NEVER,
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
                apartAfter,
                later,
                layout);
    }

    /**
     * A text that is equal for two plans of a run if the stages in memory of one serve the other as
     * they are: the same layers, shards, room and state. Wired orders may differ in who does what.
     */
    @Override
    public String layout() {
        return layout.isEmpty() ? revision.hash() : layout;
    }

    /** Whether replicas share the micro-batches of a step as the order says. */
    public boolean isWired() {
        return training.placement().wiring().isPresent();
    }

    /** Ranks that take no part, rising: they hold nothing and run nothing. */
    public List<Integer> absent() {
        return training.placement().wiring().map(Wiring::absent).orElse(List.of());
    }

    /** Whether a rank takes part. */
    public boolean isPresent(int rank) {
        return training.placement().wiring().map(w -> w.isPresent(rank)).orElse(true);
    }

    /** The ranks that take part, rising. */
    public List<Integer> present() {
        return IntStream.range(0, ranks()).filter(this::isPresent).boxed().toList();
    }

    /** The ranks that hold all that this one does and take part, rising; itself included. */
    public List<Integer> replicasOf(int rank) {
        return grid.replicaGroup(rank).stream().filter(this::isPresent).toList();
    }

    /**
     * The grid that numbers the programs of the orders: where they are wired, every rank has a
     * program of its own.
     */
    public RankGrid programGrid() {
        return isWired() ? RankGrid.pipeline(ranks()) : grid;
    }

    public int ranks() {
        return grid.ranks();
    }

    /**
     * Other ranks that take part and hold all that this one does, rising, if they are to serve as
     * mirrors.
     */
    public List<Integer> copiesOf(int rank) {
        return servedBy(rank).stream().filter(this::isPresent).toList();
    }

    /** Other ranks that could start from this one's state, if copies are to serve as mirrors. */
    public List<Integer> servedBy(int rank) {
        return replicasAreCopies()
                ? grid.replicaGroup(rank).stream().filter(other -> other != rank).toList()
                : List.of();
    }

    /** Whether another rank is one of those that are {@link #servedBy} a rank. */
    public boolean isCopy(int rank, int other) {
        RankPlace place = grid.placeOf(rank);
        RankPlace there = grid.placeOf(other);
        return replicasAreCopies()
                && other != rank
                && there.pipeline() == place.pipeline()
                && there.tensor() == place.tensor();
    }

    private boolean replicasAreCopies() {
        return mirrors && wholeReplicas && apartAfter == NEVER && !codecs.keeps();
    }

    /** Whether replicas take this step alone. */
    public boolean isApart(long step) {
        return step > apartAfter;
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
        return schedule(kind).program(grid.programOf(rank, schedule(kind)));
    }

    /**
     * Who holds a stage in the pipeline that this rank belongs to; of a wired order, whether or not
     * it takes part.
     */
    public int holderOf(int stage, int rank) {
        return grid.sibling(rank, training.placement().rankOf(stage));
    }

    /** Who sends this rank what a channel between stages brings it. */
    public int senderTo(int rank, ChannelKey channel) {
        return holderOf(channel.fromStage(), channel.fromPeer(), rank);
    }

    /**
     * How many tensors may be under way on a channel between stages; 0 if the orders do not have
     * it.
     */
    public int credits(ChannelKey channel) {
        ChannelKey known = grid.isUneven() ? channel.ofStages() : channel;
        return inFlight.getOrDefault(known, 0);
    }

    /** Who receives what this rank sends on a channel between stages. */
    public int receiverFrom(int rank, ChannelKey channel) {
        if (grid.isUneven()) {
            int program = training.placement().rankOf(channel.stage());
            return grid.receivers(rank, program).get(channel.toPeer());
        }
        return holderOf(channel.stage(), channel.toPeer(), rank);
    }

    private int holderOf(int stage, int peer, int rank) {
        return training.placement()
                .wiring()
                .map(wiring -> wiring.rankOf(peer, training.placement().rankOf(stage)))
                .orElseGet(() -> holderOf(stage, rank));
    }

    /** The program that a pass of this kind follows. */
    public Schedule schedule(StepKind kind) {
        return switch (kind) {
            case TRAIN -> training;
            case EVALUATE -> evaluation;
        };
    }
}
