package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.runtime.config.run.PipelineSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/** What the actors are told of a run: its order, its steps, its deadlines. */
final class ConfiguredPlan {
    /** Of more batches than that, the shares are as good as equal. */
    private static final int MOST_SHARES = 100_000;

    /** Keys that say who does which micro-batch, and nothing of what ranks hold. */
    private static final Set<String> WIRING =
            Set.of(
                    "schedule.wiring",
                    "schedule.wiring-seed",
                    "schedule.without",
                    "schedule.costs",
                    "schedule.hold-more");

    private final RunParts parts;
    private final RunConfig config;
    private final RunOptions options;
    private final ProvedSchedule schedule;

    private ConfiguredPlan(RunParts parts, RunOptions options) {
        this.parts = parts;
        this.config = parts.config();
        this.options = options;
        this.schedule = parts.schedule();
    }

    static RunPlan of(RunParts parts, RunOptions options) {
        return new ConfiguredPlan(parts, options).plan();
    }

    /** All that the memory of a run depends on, before it is known where the run begins. */
    static RunPlan forMemory(RunConfig config, ProvedSchedule schedule, boolean evaluateOnly) {
        return new RunPlan(
                "planned",
                "",
                schedule.training(),
                schedule.evaluation(),
                config.grid(),
                inFlight(schedule),
                new RunSteps(0, 1, 0, 0, 0, 0),
                Timeouts.DEFAULT,
                config.recovery().mirror() && !evaluateOnly,
                config.parallel().zeroStage() == 0,
                config.parallel().ringFromBytes(),
                config.codecs(),
                apartAfter(config),
                PlanRevision.NONE,
                layout(config, schedule));
    }

    private static long apartAfter(RunConfig config) {
        return config.parallel().outer().map(outer -> (long) outer.after()).orElse(RunPlan.NEVER);
    }

    /** By rank, the lowest rank that is to live in the same process, on one host. */
    static List<Integer> homes(RunConfig config) {
        boolean apart = config.pipeline().processes() == PipelineSection.Processes.PER_STAGE;
        return IntStream.range(0, config.grid().ranks())
                .mapToObj(rank -> apart ? rank : 0)
                .toList();
    }

    /**
     * By rank, the lowest rank that it meets in shared memory: none but itself where links are
     * emulated, which all has to travel over.
     *
     * @param homes by rank, the lowest rank that lives in the same process
     */
    static List<Integer> meeting(RunConfig config, List<Integer> homes) {
        return config.dataPlane().emulated().areEmulated()
                ? IntStream.range(0, homes.size()).boxed().toList()
                : homes;
    }

    private RunPlan plan() {
        var timeouts = config.timeouts();
        return new RunPlan(
                options.runId(),
                hash(),
                schedule.training(),
                schedule.evaluation(),
                config.grid(),
                inFlight(schedule),
                steps(),
                new Timeouts(
                        timeouts.lease(),
                        timeouts.stallReport(),
                        timeouts.stall(),
                        timeouts.start(),
                        timeouts.stop()),
                config.recovery().mirror() && !options.evaluateOnly(),
                config.parallel().zeroStage() == 0,
                config.parallel().ringFromBytes(),
                config.codecs(),
                apartAfter(config),
                PlanRevision.NONE,
                layout(config, schedule));
    }

    private RunSteps steps() {
        long completed = parts.start().completedSteps();
        boolean evaluateOnly = options.evaluateOnly();
        int evaluateEvery = evaluateOnly ? 1 : config.evaluation().every();
        boolean heldOut = parts.data().hasHeldOut();
        int batches = Math.min(config.evaluation().batches(), parts.data().heldOutBatches());
        return new RunSteps(
                completed,
                evaluateOnly ? completed : config.run().steps(),
                config.optimizer().clipNorm(),
                heldOut ? evaluateEvery : 0,
                batches,
                heldOut ? evaluationShares(batches) : List.of(),
                evaluateOnly ? 0 : checkpointEvery(),
                config.optimizer().scaling().map(parts.start()::scaler));
    }

    /** Of data all of whose targets count, only the last batch may be smaller. */
    private List<Double> evaluationShares(int batches) {
        TrainingData data = parts.data();
        int full = config.batch().sequences();
        int last = data.sequences(StepKind.EVALUATE, batches - 1L, full);
        if (batches > MOST_SHARES || !(data.packed() || data.masked())) {
            return List.of(last / (double) full);
        }
        double targets = (double) full * config.model().context();
        List<Double> shares = new ArrayList<>();
        for (int batch = 0; batch < batches; batch++) {
            int sequences = batch == batches - 1 ? last : full;
            shares.add(data.heldOutTargets((long) batch * full, sequences) / targets);
        }
        return shares;
    }

    /** 0 in the configuration means: at the end only. */
    private int checkpointEvery() {
        int every = config.checkpoint().every();
        return every == 0 ? Integer.MAX_VALUE : every;
    }

    private static Map<ChannelKey, Integer> inFlight(ProvedSchedule schedule) {
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        Schedule training = schedule.training();
        int peers = training.shape().peers();
        for (int stage = 1; stage < training.shape().stages(); stage++) {
            for (Channel each :
                    List.of(new Channel(stage - 1, stage), new Channel(stage, stage - 1))) {
                for (int from = 0; from < peers; from++) {
                    for (int to = 0; to < peers; to++) {
                        Channel channel = each.between(from, to);
                        capacities.put(key(channel), schedule.inFlight().capacity(channel));
                    }
                }
            }
        }
        return capacities;
    }

    private static ChannelKey key(Channel channel) {
        return new ChannelKey(
                channel.forward() ? FrameKind.ACTIVATION : FrameKind.GRADIENT,
                channel.fromStage(),
                channel.toStage(),
                channel.fromPeer(),
                channel.toPeer());
    }

    /**
     * What stages in memory depend on, if that may outlive a plan: where replicas do each other's
     * micro-batches, all but who does which.
     */
    private static String layout(RunConfig config, ProvedSchedule schedule) {
        return schedule.training().shape().peers() > 1 && config.schedule().isWiredKind()
                ? sha256(List.of(config.resolvedWithout(WIRING), schedule.budgets().toString()))
                : "";
    }

    /** Over all that the processes of a run must agree on. */
    private String hash() {
        return sha256(
                List.of(
                        config.resolved(),
                        ScheduleText.print(schedule.training()),
                        ScheduleText.print(schedule.evaluation())));
    }

    private static String sha256(List<String> texts) {
        try {
            var digest = MessageDigest.getInstance("SHA-256");
            for (String text : texts) {
                digest.update(text.getBytes(StandardCharsets.UTF_8));
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
