package dev.penstock.actors.simulation;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.supervisor.WiredPlans;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * A run and what goes wrong in it.
 *
 * @param grid how its ranks divide the work
 * @param sharded whether replicas hold a part of the parameters each and gather the others (ZeRO)
 * @param rings whether sums between processes go round
 * @param hosts by whose addresses processes reach each other; 0 if all use one media driver
 * @param together ranks that a process carries when the run begins; more than one only on hosts
 * @param kind of its order of work
 * @param slices of each micro-batch
 * @param clipNorm such that some steps are clipped
 * @param nanStep a number of this step is not finite; 0 for none
 * @param proofs whether the death of a process is seen by the supervisor's host
 * @param skewed whether no two processes' clocks agree
 * @param every steps after which replicas that take steps alone exchange; 0 if they sum gradients
 * @param lag steps that such an exchange has time for
 * @param wired whether replicas do each other's work, and go on without ranks that died
 */
record Scenario(
        RankGrid grid,
        boolean sharded,
        boolean rings,
        int hosts,
        int together,
        String kind,
        int slices,
        int steps,
        double clipNorm,
        int evaluateEvery,
        int checkpointEvery,
        boolean mirrors,
        int nanStep,
        RecoveryPolicy policy,
        boolean proofs,
        int spares,
        List<Harm> harms,
        boolean skewed,
        int every,
        int lag,
        boolean wired) {
    static final int MICRO_BATCHES = 2;

    /** The seeds from here on draw runs of wired replicas. */
    static final long WIRED = 1_000_000;

    /** Something that goes wrong at some time. */
    record Harm(long at, Kind kind) {}

    /** What goes wrong; chance picks the victim. */
    enum Kind {
        KILL,
        KILL_TWO,
        SHORT_STOP,
        LONG_STOP,
        STARVED,
        SHORT_CUT,
        LONG_CUT,
        CUT_MOST,
        LOST_MESSAGES,
        LINK_LOST,
        DRIVER_DEATH,
        SUPERVISOR_STOP,
        SUPERVISOR_DEATH,
        SUPERVISOR_AND_RANK_DEATH,
        SECOND_SUPERVISOR,
        DISK_FULL,
        TORN_CHECKPOINT,
        DAMAGED_CHECKPOINT,
        LOST_JOURNAL_END,
        STUCK,
        OLD_ORDERS,
        MOVE,
        INTERRUPT
    }

    /** A run of these steps in which nothing goes wrong takes about this long each. */
    private static final long STEP_NANOS = 40 * World.MILLISECOND;

    /** All ranks are open by then. */
    private static final long OPENING_NANOS = 350 * World.MILLISECOND;

    /** Draws of their own, which leave all others as they are. */
    private static final long SKEW = 1L << 40;

    /** Seeds that follow each other would draw much the same here with the other generator. */
    private static final long GRID = 1L << 41;

    private static final long REBALANCE = 1L << 47;

    private static final long HOSTS = 1L << 42;

    private static final long ORDER = 1L << 43;

    private static final long CONTEXT = 1L << 44;

    private static final long APART = 1L << 45;

    /** Of token slices, or with backwards in two parts, or both. */
    private static final List<String> UNUSUAL =
            List.of("terapipe", "terapipe-1f1b", "seq1f1b", "zb-h1", "zb-h2");

    static Scenario of(long seed) {
        return seed < WIRED ? drawn(seed) : drawn(seed - WIRED).wired(seed);
    }

    /** The same with replicas that do each other's work. */
    private Scenario wired(long seed) {
        var random = new SplittableRandom(seed);
        boolean degraded = random.nextInt(8) > 0;
        return new Scenario(
                new RankGrid(1 + random.nextInt(3), 1, 1, 2 + random.nextInt(2)),
                false,
                rings,
                hosts,
                together,
                random.nextBoolean() ? "wired-1f1b" : "wired-zb",
                1,
                steps,
                clipNorm,
                evaluateEvery,
                checkpointEvery,
                false,
                nanStep,
                new RecoveryPolicy(
                        true,
                        policy.maxRestarts(),
                        policy.window(),
                        policy.roomPatience(),
                        policy.nonFinite(),
                        degraded,
                        policy.rebalanceAfter()),
                proofs,
                spares,
                harms,
                skewed,
                0,
                0,
                true);
    }

    private static Scenario drawn(long seed) {
        var random = new Random(seed);
        int ranks = 2 + random.nextInt(4);
        int steps = 4 + random.nextInt(8);
        var nonFinite = one(random, RecoveryPolicy.NonFinite.values());
        boolean nan = random.nextInt(8) == 0;
        boolean strict = random.nextInt(8) == 0;
        boolean skewed = new Random(seed + SKEW).nextInt(3) == 0;
        Duration window = strict && skewed ? Duration.ofMillis(50) : Duration.ofMinutes(10);
        var needsAllNodes =
                new RecoveryPolicy(
                        true, strict ? 1 : 100, window, Duration.ofMinutes(10), nonFinite);
        var policy =
                new SplittableRandom(seed + REBALANCE).nextInt(4) == 0
                        ? needsAllNodes.rebalancingAfter(Duration.ofSeconds(1))
                        : needsAllNodes;
        var ofGrid = new SplittableRandom(seed + GRID);
        RankGrid grid =
                ofGrid.nextInt(3) == 0
                        ? withContext(grid(ofGrid), new SplittableRandom(seed + CONTEXT))
                        : RankGrid.pipeline(ranks);
        boolean sharded = ofGrid.nextInt(3) == 0 && holders(grid) > 1;
        var ofApart = new SplittableRandom(seed + APART);
        boolean apart = grid.data() > 1 && grid.context() == 1 && !sharded && ofApart.nextBoolean();
        int every = apart ? 1 + ofApart.nextInt(4) : 0;
        int lag = apart ? ofApart.nextInt(every) : 0;
        var ofHosts = new SplittableRandom(seed + HOSTS);
        int hosts = ofHosts.nextInt(3) == 0 ? 1 + ofHosts.nextInt(3) : 0;
        int together = hosts == 0 ? 1 : 1 + ofHosts.nextInt(2);
        String whole = random.nextBoolean() ? "1f1b" : "gpipe";
        var ofOrder = new SplittableRandom(seed + ORDER);
        boolean usual = ofOrder.nextInt(6) > 0;
        return new Scenario(
                grid,
                sharded,
                ofGrid.nextBoolean(),
                hosts,
                together,
                usual ? whole : UNUSUAL.get(ofOrder.nextInt(UNUSUAL.size())),
                usual ? 1 : 1 + ofOrder.nextInt(2),
                steps,
                random.nextBoolean() ? 1.5 : 0,
                random.nextInt(3) == 0 ? 3 : 0,
                random.nextInt(4),
                random.nextInt(3) > 0 && !apart,
                nan ? 1 + random.nextInt(steps) : 0,
                policy,
                random.nextInt(3) > 0,
                random.nextInt(2),
                harms(random, steps),
                skewed,
                every,
                lag,
                false);
    }

    /** Of two to eight ranks. */
    private static RankGrid grid(SplittableRandom random) {
        int pipeline = 1 + random.nextInt(3);
        int tensor = 1 + random.nextInt(2);
        int least = tensor == 1 ? 2 : 1;
        int most = pipeline * tensor == 6 ? 1 : pipeline == 1 ? 3 : 2;
        return new RankGrid(pipeline, tensor, 1, least + random.nextInt(most - least + 1));
    }

    /** Has parts of sequences where others have replicas, or, if it stays small, also has those. */
    private static RankGrid withContext(RankGrid grid, SplittableRandom random) {
        int parts = random.nextInt(3) == 0 ? grid.data() : 1;
        int data = parts == 1 ? grid.data() : grid.ranks() > 4 ? 1 : 1 + random.nextInt(2);
        return new RankGrid(grid.pipeline(), grid.tensor(), parts, data);
    }

    /** How many ranks have the same parameters. */
    private static int holders(RankGrid grid) {
        return grid.context() * grid.data();
    }

    /** Whether stages wait for other ranks in the midst of an op, or of another order. */
    boolean waitsInStages() {
        return grid.tensor() > 1 || grid.context() > 1 || sharded || every > 0;
    }

    int unitsPerStage() {
        return MICRO_BATCHES * slices;
    }

    /** Often close together: a recovery is when the next fault hurts most. */
    private static List<Harm> harms(Random random, int steps) {
        List<Harm> harms = new ArrayList<>();
        int count = random.nextInt(6);
        long at = random.nextInt(10) == 0 ? 0 : OPENING_NANOS;
        for (int i = 0; i < count; i++) {
            boolean close = i > 0 && random.nextBoolean();
            long span = close ? World.SECOND / 10 : steps * STEP_NANOS / 2;
            at += (long) (random.nextDouble() * span);
            Kind[] kinds = Kind.values();
            boolean kill = random.nextInt(3) == 0;
            harms.add(new Harm(at, kill ? Kind.KILL : one(random, kinds)));
        }
        return harms;
    }

    private static <T> T one(Random random, T[] of) {
        return of[random.nextInt(of.length)];
    }

    boolean has(Kind wanted) {
        return harms.stream().anyMatch(harm -> harm.kind() == wanted);
    }

    boolean skips() {
        return nanStep > 0 && policy.nonFinite() == RecoveryPolicy.NonFinite.SKIP;
    }

    /** The same run with nothing that goes wrong, but for a step that is left out. */
    Scenario undisturbed() {
        return new Scenario(
                grid,
                sharded,
                rings,
                0,
                1,
                kind,
                slices,
                steps,
                clipNorm,
                evaluateEvery,
                every > 0 ? steps : 0, // which applies an exchange behind the last step
                false,
                skips() ? nanStep : 0,
                skips() ? policy : RecoveryPolicy.DEFAULT,
                true,
                0,
                List.of(),
                false,
                every,
                lag,
                wired);
    }

    /** The first of all ranks that have the same parameters, by which these are known. */
    int partOf(int rank) {
        return sharded || every > 0 ? rank : grid.replicaGroup(rank).getFirst();
    }

    /** How many ranks are the first with their parameters. */
    int parts() {
        return (int) IntStream.range(0, grid.ranks()).filter(rank -> partOf(rank) == rank).count();
    }

    /** Who makes the plans of wired replicas. */
    WiredPlans wiredPlans() {
        int peers = grid.data();
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        for (int s = 1; s < grid.pipeline(); s++) {
            for (int from = 0; from < peers; from++) {
                for (int to = 0; to < peers; to++) {
                    int most = MICRO_BATCHES * peers;
                    capacities.put(new ChannelKey(FrameKind.ACTIVATION, s - 1, s, from, to), most);
                    capacities.put(new ChannelKey(FrameKind.GRADIENT, s, s - 1, from, to), most);
                }
            }
        }
        return new WiredPlans(
                grid.pipeline(),
                peers,
                MICRO_BATCHES * peers,
                kind.equals("wired-zb") ? Backwards.SPLIT : Backwards.FULL,
                runSteps(),
                rings ? 0 : CollectiveForm.NEVER,
                capacities);
    }

    private RunSteps runSteps() {
        return new RunSteps(0, steps, clipNorm, evaluateEvery, 2, checkpointEvery);
    }

    RunPlan plan() {
        if (wired) {
            return wiredPlans().first();
        }
        int stages = grid.pipeline();
        PipelineShape shape = PipelineShape.of(stages, MICRO_BATCHES, slices);
        Schedule compute = Generators.generate(kind, shape);
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        for (int s = 1; s < stages; s++) {
            capacities.put(new ChannelKey(FrameKind.ACTIVATION, s - 1, s), MICRO_BATCHES);
            capacities.put(new ChannelKey(FrameKind.GRADIENT, s, s - 1), MICRO_BATCHES);
        }
        LoweringOptions options = LoweringOptions.plain();
        if (holders(grid) > 1) {
            options = options.withReduction(GradientReduction.PER_STEP);
        }
        if (sharded) {
            options = options.withGathers(new GatherSettings(ParameterResidency.PER_OP, 1));
        }
        return new RunPlan(
                "simulated",
                "hash",
                Lowering.lower(compute, options),
                Lowering.lowerForwardOnly(compute, options),
                grid,
                capacities,
                runSteps(),
                Timeouts.DEFAULT,
                mirrors,
                !sharded,
                rings ? 0 : CollectiveForm.NEVER,
                ChannelCodecs.NONE,
                every > 0 ? 0 : RunPlan.NEVER,
                PlanRevision.NONE);
    }
}
