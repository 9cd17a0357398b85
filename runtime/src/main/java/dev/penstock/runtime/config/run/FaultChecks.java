package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.config.run.FaultEntry.Moment;
import dev.penstock.schedules.ir.OpText;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SortedMap;

/** Finds faults that cannot happen in the run that a configuration describes. */
final class FaultChecks {
    private final RunConfig config;
    private final List<Conflict> conflicts = new ArrayList<>();

    private FaultChecks(RunConfig config) {
        this.config = config;
    }

    /**
     * @param faults by their place in the list
     */
    static List<Conflict> of(RunConfig config, SortedMap<Integer, FaultEntry> faults) {
        var checks = new FaultChecks(config);
        faults.forEach(
                (index, fault) ->
                        checks.check("%s[%d].".formatted(FaultEntries.NAME, index), fault));
        return checks.conflicts;
    }

    private void check(String at, FaultEntry fault) {
        switch (fault) {
            case FaultEntry.KillRank(int rank, int step, var op, var moment) -> {
                requireRank(at + "kill-rank", rank);
                requireStep(at + "step", step);
                requirePlace(at, op, moment, step);
                requireOwnProcess(at + "kill-rank");
            }
            case FaultEntry.PauseRank(int rank, _, int step, var op, var moment) -> {
                requireRank(at + "pause-rank", rank);
                requireStep(at + "step", step);
                requirePlace(at, op, moment, step);
            }
            case FaultEntry.DropFrames(_, _, int from, var to) -> requireSpan(at, from, to);
            case FaultEntry.DelayFrames(_, _, _, int from, var to) -> requireSpan(at, from, to);
            case FaultEntry.DuplicateFrames(_, _, int from, var to) -> requireSpan(at, from, to);
            case FaultEntry.CorruptFrames(_, _, int from, var to) -> requireSpan(at, from, to);
            case FaultEntry.FailDisk(_, int step) -> requireSaved(at + "step", step);
            case FaultEntry.TearCheckpoint(_, int step) -> requireSaved(at + "step", step);
            case FaultEntry.InjectNan(int stage, int replica, int microBatch, int step) -> {
                requireStage(at + "inject-nan", stage);
                requireReplica(at + "replica", replica);
                requireStep(at + "step", step);
                requireMicroBatch(at + "micro-batch", microBatch);
                require(
                        config.stages() > 1,
                        at + "inject-nan",
                        "two stages or more, for it is put into what one gives another",
                        "pipeline.stages = 1",
                        "use more stages",
                        "pipeline");
            }
            case FaultEntry.SlowStage(
                            int stage,
                            var replica,
                            double factor,
                            var atLeast,
                            int from,
                            var to) -> {
                requireStage(at + "slow-stage", stage);
                require(
                        factor > 1 || atLeast.isPresent(),
                        at + "factor",
                        "more than 1, or at-least beside it",
                        "1",
                        "as it is, nothing becomes slower");
                replica.ifPresent(each -> requireReplica(at + "replica", each));
                requireSpan(at, from, to);
            }
        }
    }

    private void requireRank(String key, int rank) {
        require(
                rank < config.grid().ranks(),
                key,
                config.grid().isPipelineAlone()
                        ? "a rank below pipeline.stages = " + config.pipeline().stages()
                        : "a rank below %d: pipeline.stages x those of parallel"
                                .formatted(config.grid().ranks()),
                "" + rank,
                "the first rank is 0",
                "pipeline.stages",
                "parallel");
    }

    private void requireStage(String key, int stage) {
        require(
                stage < config.stages(),
                key,
                "a stage below %d".formatted(config.stages()),
                "" + stage,
                "the first stage is 0",
                "pipeline",
                "schedule");
    }

    private void requireReplica(String key, int replica) {
        require(
                replica < config.parallel().data(),
                key,
                "a replica below parallel.data = " + config.parallel().data(),
                "" + replica,
                "the first replica is 0",
                "parallel.data");
    }

    private void requireMicroBatch(String key, int microBatch) {
        boolean wired = config.schedule().isWiredKind();
        require(
                microBatch
                        < (wired ? config.batch().microBatches() : config.microBatchesOfReplica()),
                key,
                wired || config.parallel().data() == 1
                        ? "a micro-batch below batch.micro-batches = "
                                + config.batch().microBatches()
                        : "a micro-batch below batch.micro-batches / parallel.data = "
                                + config.microBatchesOfReplica(),
                "" + microBatch,
                "the first micro-batch is 0",
                "batch.micro-batches");
    }

    private void requireStep(String key, int step) {
        require(
                step <= config.run().steps(),
                key,
                "at most run.steps = " + config.run().steps(),
                "" + step,
                "name an earlier step or raise run.steps",
                "run.steps");
    }

    private void requireSpan(String at, int from, Optional<Integer> to) {
        requireStep(at + "from-step", from);
        int last = to.orElse(from);
        require(
                from <= last,
                at + "to-step",
                "at least from-step = " + from,
                "" + last,
                "name a later step or leave it out");
    }

    private void requireSaved(String key, int step) {
        int every = config.checkpoint().every();
        int steps = config.run().steps();
        boolean saved = step == steps || (every > 0 && step % every == 0 && step <= steps);
        require(
                saved,
                key,
                "a step after which a checkpoint is saved",
                "" + step,
                every == 0
                        ? "try %d, the last".formatted(steps)
                        : "try %d, or another multiple of checkpoint.every"
                                .formatted(Math.min(every, steps)),
                "checkpoint.every",
                "run.steps");
    }

    private void requireOwnProcess(String key) {
        require(
                config.pipeline().processes() == PipelineSection.Processes.PER_STAGE,
                key,
                "a rank in a process of its own",
                "pipeline.processes = single, where killing a rank ends the whole run",
                "try pipeline.processes = per-stage",
                "pipeline.processes");
    }

    private void requirePlace(String at, Optional<String> op, Moment moment, int step) {
        require(
                op.isEmpty() || moment == Moment.BEGIN,
                at + "at",
                "one place: an op or a moment",
                "op = %s and at = %s"
                        .formatted(op.orElse(""), moment.name().toLowerCase(Locale.ROOT)),
                "leave one out");
        op.ifPresent(
                text ->
                        require(
                                isOp(text),
                                at + "op",
                                "an op such as 1F3, 0SEND_F2 or 2B0",
                                "\"" + text + "\"",
                                "see the order with penstock schedule show"));
        if (moment == Moment.CHECKPOINT || moment == Moment.SAVED) {
            requireSaved(at + "step", step);
        }
    }

    private static boolean isOp(String text) {
        return OpText.parse(text).isPresent();
    }

    /**
     * @param others keys whose values the check builds on
     */
    private void require(
            boolean holds,
            String key,
            String expected,
            String got,
            String advice,
            String... others) {
        if (!holds) {
            List<String> keys = new ArrayList<>(List.of(key));
            keys.addAll(List.of(others));
            conflicts.add(new Conflict(keys, expected, got, advice));
        }
    }
}
