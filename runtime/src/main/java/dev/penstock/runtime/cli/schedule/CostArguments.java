package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.hardware.HardwareLoader;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.links.CodecChoice;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.runtime.planning.HardwareModel;
import dev.penstock.runtime.planning.MeasuredSlices;
import dev.penstock.runtime.planning.ProfileFile;
import dev.penstock.runtime.planning.SliceTimes;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.OmitFrozen;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InvalidCostsException;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import dev.penstock.schedules.simulate.Traffic;
import dev.penstock.schedules.simulate.UnitCosts;
import dev.penstock.schedules.simulate.apart.ExchangingSteps;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What ops cost in a simulation. */
final class CostArguments {
    @Option(
            names = "--costs",
            paramLabel = "OP=TIME,..",
            description = {
                "Times in any whole unit: forward, backward-input and backward-weight",
                "(default 1 each), backward (default both), recompute, overlapped,",
                "transfer, link, gather, offload, reduce (default 0 each)."
            })
    private List<String> costs = new ArrayList<>();

    @Option(
            names = "--profile",
            split = ",",
            paramLabel = "RUN|FILE",
            description = {
                "Times that a run measured, in nanoseconds: its directory, or its",
                "profile.txt."
            })
    private List<Path> profiles = new ArrayList<>();

    @Option(
            names = "--hardware",
            paramLabel = "FILE",
            description = {
                "Times in nanoseconds that follow from a cluster file, such as those of",
                "sample-configs/hardware: one device per rank; with a configuration its",
                "shards, replicas and batch, else one sequence per micro-batch."
            })
    private @Nullable Path hardware;

    @Option(
            names = "--model",
            paramLabel = "NAME|FILE|KEY=VALUE,..",
            description = {
                "The model on that hardware, as in penstock plan (default: that of the",
                "configuration, else gpt2-124m)."
            })
    private @Nullable String model;

    @Option(
            names = "--straggler",
            paramLabel = "RANK=FACTOR",
            description =
                    "All ops of a rank take FACTOR times as long; may be repeated for other ranks.")
    private List<String> stragglers = new ArrayList<>();

    /** Whether times are nanoseconds and not units. */
    boolean measured() {
        return !profiles.isEmpty() || hardware != null;
    }

    /** Whether there are any. */
    boolean given() {
        return measured() || !costs.isEmpty();
    }

    /** Whether a model is named, which need not be a configuration's. */
    boolean namesModel() {
        return model != null;
    }

    /**
     * The model that slices are cut for.
     *
     * @param tokens of a sequence; null for the model's
     */
    ModelShape shapeOfModel(@Nullable Integer tokens) {
        return HardwareModel.shape(modelOrUsual(), tokens);
    }

    private String modelOrUsual() {
        return model == null ? "gpt2-124m" : model;
    }

    /**
     * What slices of any length cost.
     *
     * @param tokens of a sequence; null for the model's or the runs'
     * @throws BadInputException if the options do not say it
     */
    SliceTimes sliceTimes(PipelineShape shape, @Nullable Integer tokens) {
        if (!measured() || !costs.isEmpty() || (hardware != null && !profiles.isEmpty())) {
            throw new BadInputException(
                    "--slice-lengths planned: expected the times of slices of any length from"
                            + " --hardware, or from several runs with --profile, got "
                            + (given() ? "other or both options" : "neither"));
        }
        if (hardware != null) {
            return HardwareModel.sliceTimes(hardware, shapeOfModel(tokens), shape);
        }
        SliceTimes times = MeasuredSlices.of(profiles, shape);
        if (tokens != null && tokens != times.tokens()) {
            throw new BadInputException(
                    "expected --tokens %d, as the runs measured, got %d"
                            .formatted(times.tokens(), tokens));
        }
        return times;
    }

    /**
     * The costs of what the schedule computes, on ranks that may be slow.
     *
     * @throws BadInputException with everything that is wrong with them
     */
    CostModel model(Schedule schedule) {
        return model(schedule, Optional.empty());
    }

    /**
     * Same as {@link #model(Schedule)}.
     *
     * @param run that the schedule is of: hardware is divided as it says
     */
    CostModel model(Schedule schedule, Optional<RunConfig> run) {
        return Stragglers.among(stragglers, schedule.shape().ranks(), usual(schedule, run));
    }

    /** Whether some rank is slow. */
    boolean hasStragglers() {
        return !stragglers.isEmpty();
    }

    /** What follows on the last op of a step; empty without a profile that holds it. */
    Optional<Long> updateNanos() {
        return profiles.stream()
                .map(ProfileFile::read)
                .flatMapToLong(profile -> profile.updateNanos().stream())
                .boxed()
                .findFirst();
    }

    /** Bytes of the tensors, where the model is known. */
    Optional<Traffic.TensorBytes> tensorBytes(Schedule schedule, Optional<RunConfig> run) {
        return Optional.ofNullable(hardware).map(file -> ofHardware(file, schedule, run));
    }

    private HardwareCosts ofHardware(Path file, Schedule schedule, Optional<RunConfig> run) {
        return run.isPresent()
                ? HardwareModel.of(file, Optional.ofNullable(model), schedule, run.get())
                : HardwareModel.of(file, modelOrUsual(), schedule);
    }

    /**
     * How long steps take where replicas exchange what they learned alone; empty where they do not,
     * or the hardware is not known.
     *
     * @param step as these costs have it
     */
    Optional<ExchangingSteps> exchanges(Timeline step, Optional<RunConfig> run) {
        Path file = hardware;
        if (file == null || run.isEmpty()) {
            return Optional.empty();
        }
        return run.get()
                .parallel()
                .outer()
                .map(
                        outer ->
                                ExchangingSteps.of(
                                        step,
                                        HardwareModel.exchanges(
                                                file,
                                                Optional.ofNullable(model),
                                                step.schedule(),
                                                run.get(),
                                                outer),
                                        outer.every(),
                                        outer.lag()));
    }

    /** The costs if no rank is slow. */
    CostModel usual(Schedule schedule, Optional<RunConfig> run) {
        long given =
                Stream.of(!costs.isEmpty(), !profiles.isEmpty(), hardware != null)
                        .filter(each -> each)
                        .count();
        if (given > 1) {
            throw new BadInputException(
                    "expected one of --costs, --profile and --hardware, got %d".formatted(given));
        }
        if (hardware != null && schedule.shape().peers() > 1) {
            throw new BadInputException(
                    "--hardware: expected an order of one pipeline, got a wired one of %d peers; time it with --costs and --straggler"
                            .formatted(schedule.shape().peers()));
        }
        if (hardware != null) {
            return withLinks(ofHardware(hardware, schedule, run), schedule, run);
        }
        if (profiles.isEmpty()) {
            return units();
        }
        if (profiles.size() > 1) {
            throw new BadInputException("expected one --profile, got " + profiles);
        }
        Path profile = profiles.getFirst();
        ProfileCosts measured = ProfileFile.read(profile);
        List<String> missing = measured.missing(schedule);
        if (!missing.isEmpty()) {
            throw new BadInputException(
                    "%s was measured on another shape, it lacks %s; simulate an order of the run's stages and slices, or give --costs"
                            .formatted(profile, String.join("; ", missing)));
        }
        return withLinks(measured, schedule, run);
    }

    private CostModel withLinks(CostModel others, Schedule schedule, Optional<RunConfig> run) {
        return run.map(
                        config ->
                                LinkCosts.of(
                                        others,
                                        schedule,
                                        config,
                                        model == null
                                                ? config.model().width()
                                                : shapeOfModel(null).width()))
                .orElse(others);
    }

    /**
     * The codec that makes a step of a run fastest; empty where times are no seconds or nothing
     * travels.
     */
    Optional<CodecChoice> codec(Schedule schedule, Optional<RunConfig> run) {
        return measured() && schedule.shape().ranks() > 1
                ? run.map(
                        config ->
                                CodecChoice.of(
                                        codec ->
                                                ScheduleSimulator.simulate(
                                                                schedule,
                                                                model(
                                                                        schedule,
                                                                        Optional.of(
                                                                                config.withCodec(
                                                                                        codec))))
                                                        .makespanNanos()))
                : Optional.empty();
    }

    /** What is wrong with the options, whatever the schedule and the files. */
    void check(OptionProblems problems) {
        check(problems, String.join(",", costs));
    }

    /**
     * The same, with what is wrong with files of theirs and with slow ranks.
     *
     * @param given the order, if it could be read
     */
    void check(Optional<GivenOrder> given, OptionProblems problems) {
        int before = problems.size();
        check(problems);
        if (given.isPresent() && problems.size() == before) {
            GivenOrder read = given.get();
            problems.read(() -> usual(OmitFrozen.from(read.order(), read.frozen()), read.config()));
        } else {
            profiles.forEach(profile -> problems.read(() -> ProfileFile.read(profile)));
            Optional.ofNullable(hardware)
                    .ifPresent(file -> problems.read(() -> HardwareLoader.load(file)));
        }
        int ranks = given.map(read -> read.order().shape().ranks()).orElse(Integer.MAX_VALUE);
        Stragglers.check(stragglers, ranks, problems);
    }

    /** The same of costs that stand elsewhere. */
    static void check(OptionProblems problems, String costs) {
        try {
            var _ = UnitCosts.parse(costs);
        } catch (InvalidCostsException e) {
            e.problems().forEach(problem -> problems.add("--costs: " + problem));
        }
    }

    /**
     * @throws BadInputException with everything that is wrong with them
     */
    UnitCosts units() {
        var problems = new OptionProblems();
        check(problems);
        problems.orThrow();
        return UnitCosts.parse(String.join(",", costs));
    }

    /**
     * What the searched kinds ask of each rank: the means over its stages.
     *
     * @param order of the shape and placement that is searched for
     */
    List<OpCosts> perRank(Schedule order) {
        CostModel model = model(order);
        List<OpCosts> ranks = new ArrayList<>();
        for (int rank = 0; rank < order.shape().ranks(); rank++) {
            ranks.add(costsOf(rank, order, model));
        }
        return ranks;
    }

    private static OpCosts costsOf(int rank, Schedule order, CostModel model) {
        long forward = 0;
        long input = 0;
        long weight = 0;
        long way = 0;
        List<Integer> stages = order.placement().stagesOf(rank);
        for (int stage : stages) {
            var unit = new WorkUnit(stage, 0, 0);
            forward += model.nanos(rank, 0, new Op.Forward(unit));
            input += model.nanos(rank, 0, new Op.BackwardInput(unit));
            weight += model.nanos(rank, 0, new Op.BackwardWeight(unit));
            if (order.placement().crossesAfter(stage)) {
                var channel = new Channel(stage, stage + 1);
                long next =
                        model.latencyNanos(channel)
                                + model.occupancyNanos(channel, unit.onStage(stage + 1));
                way = Math.max(way, next);
            }
        }
        int count = stages.size();
        return new OpCosts(forward / count, input / count, weight / count, way);
    }
}
