package dev.penstock.runtime.launch;

import dev.penstock.actors.fault.Fault;
import dev.penstock.actors.fault.Fault.Place;
import dev.penstock.actors.fault.FaultInjector;
import dev.penstock.actors.fault.FaultMarkers;
import dev.penstock.actors.fault.FaultPlan;
import dev.penstock.actors.fault.FrameHarm;
import dev.penstock.actors.fault.ProcessHarm;
import dev.penstock.actors.fault.SavePoint;
import dev.penstock.actors.fault.StepMoment;
import dev.penstock.actors.fault.StepSpan;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.FaultEntry;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.PipelineSection.Processes;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/** What a configuration makes go wrong on purpose. */
public final class ConfiguredFaults {
    /** The folder in a run's directory that remembers which faults have happened. */
    private static final String FOLDER = "faults";

    private ConfiguredFaults() {}

    /** The faults, in the order of the configuration. */
    public static FaultPlan plan(RunConfig config) {
        long last = config.run().steps();
        return new FaultPlan(config.fault().stream().map(entry -> fault(entry, last)).toList());
    }

    /** Which faults of the run in this directory have happened, and when. */
    public static FaultMarkers markers(Path runDirectory) {
        return new FaultMarkers(runDirectory.resolve(FOLDER), InstantSource.system());
    }

    /**
     * What a fault does to a process of a run: only one that is no more than a rank pauses whole.
     */
    static ProcessHarm harm(RunConfig config) {
        return config.pipeline().processes() == Processes.PER_STAGE
                ? ProcessHarm.WHOLE_PROCESS
                : ProcessHarm.ONE_THREAD;
    }

    /**
     * Makes them happen in this process.
     *
     * @param harm what they do to it
     */
    static FaultInjector injector(RunConfig config, Path runDirectory, ProcessHarm harm) {
        FaultPlan plan = plan(config);
        return plan.isEmpty()
                ? FaultInjector.NONE
                : new FaultInjector(plan, markers(runDirectory), harm);
    }

    /** Whether frames of the data plane are harmed. */
    static boolean harmFrames(RunConfig config) {
        return config.fault().stream()
                .anyMatch(
                        entry ->
                                switch (entry) {
                                    case FaultEntry.DropFrames _,
                                            FaultEntry.DelayFrames _,
                                            FaultEntry.DuplicateFrames _,
                                            FaultEntry.CorruptFrames _ ->
                                            true;
                                    case FaultEntry.KillRank _,
                                            FaultEntry.PauseRank _,
                                            FaultEntry.FailDisk _,
                                            FaultEntry.TearCheckpoint _,
                                            FaultEntry.InjectNan _,
                                            FaultEntry.SlowStage _ ->
                                            false;
                                });
    }

    /** Faults at ops and moments that their rank does not have. */
    static List<Problem> problems(LoadedConfig loaded, Schedule training) {
        List<FaultEntry> entries = loaded.config().fault();
        List<Problem> problems = new ArrayList<>();
        for (int i = 0; i < entries.size(); i++) {
            String at = "fault[%d].".formatted(i);
            switch (entries.get(i)) {
                case FaultEntry.KillRank(int rank, _, var op, var moment) ->
                        problem(loaded, at, op, moment, rank, training).ifPresent(problems::add);
                case FaultEntry.PauseRank(int rank, _, _, var op, var moment) ->
                        problem(loaded, at, op, moment, rank, training).ifPresent(problems::add);
                case FaultEntry.DropFrames _,
                        FaultEntry.DelayFrames _,
                        FaultEntry.DuplicateFrames _,
                        FaultEntry.CorruptFrames _,
                        FaultEntry.FailDisk _,
                        FaultEntry.TearCheckpoint _,
                        FaultEntry.InjectNan _,
                        FaultEntry.SlowStage _ -> {}
            }
        }
        return problems;
    }

    private static Optional<Problem> problem(
            LoadedConfig loaded,
            String at,
            Optional<String> text,
            FaultEntry.Moment moment,
            int rank,
            Schedule training) {
        int pipeline = loaded.config().grid().programOf(rank, training);
        RankProgram program = training.program(pipeline);
        if (text.isEmpty()) {
            return has(program, moment)
                    ? Optional.empty()
                    : Optional.of(
                            loaded.problem(
                                    at + "at",
                                    "a moment that a step of rank %d has".formatted(rank),
                                    moment.name().toLowerCase(Locale.ROOT),
                                    "parameters are gathered with parallel.zero.stage of 1 or more,"
                                            + " gradients summed among replicas; see the order with"
                                            + " penstock schedule show"));
        }
        Op op = OpText.parse(text.get()).orElseThrow();
        boolean has =
                program.ops().stream()
                        .flatMap(each -> Stream.concat(Stream.of(each), parts(each)))
                        .anyMatch(op::equals);
        if (has) {
            return Optional.empty();
        }
        return Optional.of(
                loaded.problem(
                        at + "op",
                        "an op of rank %d, which holds stages %s"
                                .formatted(rank, training.placement().stagesOf(pipeline)),
                        "\"" + text.get() + "\"",
                        "its first is %s; see all with penstock schedule show"
                                .formatted(
                                        OpText.print(program.ops().getFirst(), training.shape()))));
    }

    private static boolean has(RankProgram program, FaultEntry.Moment moment) {
        return switch (moment) {
            case GATHERING ->
                    program.ops().stream().anyMatch(op -> op instanceof Op.GatherParameters);
            case REDUCING ->
                    program.ops().stream().anyMatch(op -> op instanceof Op.ReduceGradients);
            case BEGIN, READY, OPTIMIZER, UPDATED, CHECKPOINT, SAVED -> true;
        };
    }

    private static Stream<Op> parts(Op op) {
        return op.computations().stream().map(Op.class::cast);
    }

    private static Fault fault(FaultEntry entry, long last) {
        return switch (entry) {
            case FaultEntry.KillRank(int rank, int step, var op, var at) ->
                    new Fault.KillRank(rank, step, place(op, at));
            case FaultEntry.PauseRank(int rank, Duration length, int step, var op, var at) ->
                    new Fault.PauseRank(rank, length, step, place(op, at));
            case FaultEntry.DropFrames(double rate, long seed, int from, var to) ->
                    frames(FrameHarm.DROP, rate, seed, Duration.ZERO, span(from, to, last));
            case FaultEntry.DelayFrames(double rate, Duration delay, long seed, int from, var to) ->
                    frames(FrameHarm.DELAY, rate, seed, delay, span(from, to, last));
            case FaultEntry.DuplicateFrames(double rate, long seed, int from, var to) ->
                    frames(FrameHarm.DUPLICATE, rate, seed, Duration.ZERO, span(from, to, last));
            case FaultEntry.CorruptFrames(double rate, long seed, int from, var to) ->
                    frames(FrameHarm.CORRUPT, rate, seed, Duration.ZERO, span(from, to, last));
            case FaultEntry.FailDisk(var bytes, int step) ->
                    new Fault.FailDisk(step, bytes.bytes());
            case FaultEntry.TearCheckpoint(var point, int step) ->
                    new Fault.TearCheckpoint(step, SavePoint.valueOf(point.name()));
            case FaultEntry.InjectNan(int stage, int replica, int microBatch, int step) ->
                    new Fault.InjectNan(stage, replica, microBatch, step);
            case FaultEntry.SlowStage(
                            int stage,
                            var replica,
                            double factor,
                            var atLeast,
                            int from,
                            var to) ->
                    new Fault.SlowStage(
                            stage,
                            replica.stream().mapToInt(each -> each).findFirst(),
                            factor,
                            atLeast.orElse(Duration.ZERO),
                            span(from, to, last));
        };
    }

    private static Fault frames(
            FrameHarm harm, double rate, long seed, Duration delay, StepSpan steps) {
        return new Fault.HarmFrames(harm, rate, seed, delay, steps);
    }

    private static StepSpan span(int from, Optional<Integer> to, long last) {
        return new StepSpan(from, to.map(Integer::longValue).orElse(last));
    }

    private static Place place(Optional<String> op, FaultEntry.Moment at) {
        return op.<Place>map(text -> new Place.BeforeOp(OpText.parse(text).orElseThrow()))
                .orElseGet(
                        () ->
                                at == FaultEntry.Moment.BEGIN
                                        ? new Place.Begin()
                                        : new Place.At(StepMoment.valueOf(at.name())));
    }
}
