package dev.penstock.runtime.launch;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.runtime.checkpoint.PeftAdapter;
import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.order.ScheduleFaults;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceSection;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.FineTuneSection;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.PipelineSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.data.CountedTargets;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.launch.RunOptions.DumpRequest;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.links.CodecChoice;
import dev.penstock.runtime.memory.ActivationChoice;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.model.stage.SwappedRun;
import dev.penstock.runtime.report.MemoryPlan;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.LongSummaryStatistics;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;

/**
 * Makes the parts of a run from a draft of its configuration. Every check is done whose own keys
 * are sound, so that all problems come in one round; one whose keys are broken is left out.
 */
final class PartChecks {
    private final DraftConfig draft;
    private final LoadedConfig loaded;
    private final RunConfig config;
    private final RunStart asked;
    private final OptionalLong machineBytes;
    private final List<Problem> problems;

    /** Of the links, where it was left open. */
    private final Optional<CodecChoice> codec;

    /** Where what fits is to be chosen. */
    private final Optional<ActivationChoice> activations;

    private final Optional<ProvedSchedule> schedule;
    private final Optional<TrainingData> data;
    private final Optional<GptSettings> sizes;
    private final Optional<StartingPoint> start;

    /**
     * @param machineBytes memory that all ranks share; empty: they live somewhere else
     */
    PartChecks(DraftConfig draft, RunStart asked, List<Problem> others, OptionalLong machineBytes) {
        this.draft = draft;
        this.codec = draft.problems().isEmpty() ? codec(draft.draft()) : Optional.empty();
        LoadedConfig coded =
                codec.map(chosen -> draft.draft().withCodec(chosen.codec())).orElse(draft.draft());
        this.activations =
                draft.problems().isEmpty() && !asked.evaluateOnly()
                        ? activations(coded)
                        : Optional.empty();
        this.loaded = activations.map(chosen -> chosen.in(coded)).orElse(coded);
        this.config = loaded.config();
        this.asked = asked;
        this.machineBytes = machineBytes;
        this.problems = new ArrayList<>(draft.problems());
        problems.addAll(others);
        this.schedule = schedule();
        this.data = draft.sound("data.source") ? data() : Optional.empty();
        this.sizes = sizes();
        this.start = start();
        requireMemory();
        requireWholeSequences();
        requireOneProcess();
        requireHeldOut();
        requireTrainingText();
        requireCountedTargets();
        requireRowsThatComeAgain();
        requireFaultsAtKnownOps();
        start.ifPresent(this::requireStepsToGo);
        requireReachableDump();
    }

    private static Optional<CodecChoice> codec(LoadedConfig loaded) {
        try {
            return RunParts.codec(loaded, ConfiguredSchedule.of(loaded));
        } catch (ConfigException e) {
            return Optional.empty(); // what is wrong with it is told below
        }
    }

    private static Optional<ActivationChoice> activations(LoadedConfig loaded) {
        try {
            return RunParts.activations(loaded);
        } catch (ConfigException e) {
            return Optional.empty(); // what is wrong with it is told below
        }
    }

    /**
     * The parts, whose starting point is open.
     *
     * @throws ConfigException with all problems
     */
    RunParts partsOrThrow() {
        if (!problems.isEmpty()) {
            throw refusal();
        }
        return new RunParts(
                config,
                ConfiguredModel.tokenizer(config),
                data.orElseThrow(),
                schedule.orElseThrow(),
                resident(ConfiguredModel.settings(config, schedule.orElseThrow())),
                start.orElseThrow(),
                codec,
                activations,
                machineBytes);
    }

    /** All problems, each once, by place. */
    ConfigException refusal() {
        start.ifPresent(StartingPoint::close);
        return new ConfigException(
                problems.stream()
                        .distinct()
                        .sorted(Comparator.comparing(Problem::place).thenComparing(Problem::line))
                        .toList());
    }

    private Optional<ProvedSchedule> schedule() {
        if (draft.sound("schedule.file")) {
            problems.addAll(ScheduleFaults.ofFile(loaded));
        }
        return draft.sound(
                        "schedule",
                        "pipeline.stages",
                        "parallel",
                        "batch.micro-batches",
                        "model.context",
                        "model.tied",
                        "data-plane.in-flight")
                ? attempt(() -> ProvedSchedule.of(loaded))
                : Optional.empty();
    }

    private Optional<TrainingData> data() {
        return draft.sound(
                        "data.format",
                        "data.field",
                        "data.tokenizer",
                        "data.packing",
                        "data.loss",
                        "data.template")
                ? attempt(() -> ConfiguredData.open(draft, schedule, asked.tokens().orElse(null)))
                : Optional.empty();
    }

    private Optional<GptSettings> sizes() {
        return modelIsSound() && draft.sound("batch", "pipeline", "device")
                ? schedule.map(proved -> resident(ConfiguredModel.sizes(config, proved)))
                : Optional.empty();
    }

    /** An evaluation leaves alone what the run has swapped. */
    private GptSettings resident(GptSettings settings) {
        return asked.evaluateOnly() && settings.zero().swap().isPresent()
                ? settings.onGrid(settings.grid(), ZeroSettings.OFF)
                : settings;
    }

    private boolean modelIsSound() {
        return draft.sound("model", "data.tokenizer");
    }

    private Optional<StartingPoint> start() {
        Optional<StartingPoint> model = startOfModel();
        FineTuneSection tuning = config.fineTune();
        boolean apart =
                asked.resume().isEmpty()
                        && tuning.adapter().isPresent()
                        && tuning.method() == FineTuneSection.Method.LORA
                        && draft.sound("fine-tune.method", "fine-tune.adapter");
        if (!apart) {
            return model;
        }
        Optional<PeftAdapter> adapter = adapter(tuning, tuning.adapter().orElseThrow());
        if (model.isPresent() && adapter.isPresent()) {
            return Optional.of(model.get().with(adapter.get()));
        }
        model.ifPresent(StartingPoint::close);
        adapter.ifPresent(PeftAdapter::close);
        return Optional.empty();
    }

    private Optional<StartingPoint> startOfModel() {
        String option = asked.init().isPresent() ? "--init" : "--resume";
        try {
            StartingPoint opened = StartingPoint.of(asked);
            try {
                if (modelIsSound()) {
                    opened.requireFit(ConfiguredModel.modelConfig(config));
                }
                return Optional.of(opened);
            } catch (StoredFileException e) {
                opened.close();
                throw e;
            }
        } catch (StoredFileException e) {
            problems.add(
                    Problem.atOption(
                            option,
                            asked.init().isPresent()
                                    ? "weights of this model in Hugging Face's format"
                                    : "a checkpoint of this model",
                            String.valueOf(e.getMessage()),
                            ""));
            return Optional.empty();
        }
    }

    /** The adapter, compared with the model or, where that is not known, with the settings. */
    private Optional<PeftAdapter> adapter(FineTuneSection tuning, Path folder) {
        try {
            PeftAdapter opened = PeftAdapter.open(folder);
            try {
                if (modelIsSound() && draft.sound("fine-tune")) {
                    opened.requireFit(ConfiguredModel.modelConfig(config));
                } else if (draft.sound("fine-tune.rank", "fine-tune.alpha")) {
                    opened.requireSettings(tuning.rank(), tuning.alpha());
                }
                return Optional.of(opened);
            } catch (StoredFileException e) {
                opened.close();
                throw e;
            }
        } catch (StoredFileException e) {
            problems.add(
                    loaded.problem(
                            "fine-tune.adapter",
                            "a folder of PEFT with an adapter for this run",
                            String.valueOf(e.getMessage()),
                            ""));
            return Optional.empty();
        }
    }

    private void requireMemory() {
        if (sizes.isEmpty()) {
            return;
        }
        ProvedSchedule proved = schedule.orElseThrow();
        PlannedMemory planned = PlannedMemory.of(config, sizes.get(), proved, asked.evaluateOnly());
        problems.addAll(new JudgedMemory(loaded, proved, planned).problems(activations));
        if (machineBytes.isEmpty()) {
            return;
        }
        requireDisk(planned);
        if (config.device().kind().isCuda()) {
            requireGpu();
        } else {
            requireRoom(planned, machineBytes.getAsLong());
        }
        requireLibrary();
    }

    private void requireLibrary() {
        DeviceSection device = config.device();
        ConfiguredDevices.whyNot(device.gemm())
                .ifPresent(
                        reason ->
                                problems.add(
                                        loaded.problem(
                                                "device.gemm",
                                                "a library that this machine can use",
                                                "%s, but %s"
                                                        .formatted(
                                                                device.gemm()
                                                                        .name()
                                                                        .toLowerCase(Locale.ROOT),
                                                                reason),
                                                "try device.gemm = auto")));
    }

    private void requireGpu() {
        if (Devices.probeGpus() instanceof Gpus.None(String reason)) {
            problems.add(
                    loaded.problem(
                            "device.kind",
                            "an NVIDIA GPU on this machine",
                            reason,
                            "try device.kind = cpu; penstock doctor shows what there is"));
        }
    }

    private void requireDisk(PlannedMemory planned) {
        if (asked.evaluateOnly()) {
            return;
        }
        if (asked.swapped().isEmpty()) { // a run that goes on has its files
            requireDisk(
                    "device.swap",
                    config.device().swap(),
                    planned,
                    MemoryPlan::offloaded,
                    SwappedRun::roomBytes);
        }
        requireDisk(
                "parallel.zero.offload",
                config.parallel().zeroOffload(),
                planned,
                MemoryPlan::offloaded,
                SwappedRun::freeBytes);
        requireDisk(
                "device.offload",
                config.device().offload(),
                planned,
                MemoryPlan::activationsOnHost,
                SwappedRun::freeBytes);
    }

    /** How many bytes a folder has room for. */
    private interface Room {
        long of(Path folder) throws IOException;
    }

    private void requireDisk(
            String key,
            Optional<Path> folder,
            PlannedMemory planned,
            ToLongFunction<MemoryPlan> bytes,
            Room room) {
        long wanted = planned.ofAllRanks().stream().mapToLong(bytes).sum();
        if (folder.isEmpty() || wanted == 0) {
            return;
        }
        try {
            long free = room.of(folder.get());
            if (free < wanted) {
                problems.add(
                        loaded.problem(
                                key,
                                "a folder on a disk with room for " + Quantities.bytes(wanted),
                                "%s with %s free".formatted(folder.get(), Quantities.bytes(free)),
                                "free some space, or name another folder"));
            }
        } catch (IOException e) {
            problems.add(
                    loaded.problem(
                            key,
                            "a folder to write to",
                            "%s (%s)".formatted(folder.get(), FileCause.of(e)),
                            "name another folder"));
        }
    }

    private void requireRoom(PlannedMemory planned, long machineBytes) {
        LongSummaryStatistics ranks =
                planned.ofAllRanks().stream().mapToLong(MemoryPlan::total).summaryStatistics();
        if (ranks.getSum() > machineBytes) {
            problems.add(
                    loaded.problem(
                            "batch",
                            "a run that fits into this machine's memory of "
                                    + Quantities.bytes(machineBytes),
                            ranks.getCount() == 1
                                    ? Quantities.bytes(ranks.getSum())
                                    : "%s for %d ranks, at most %s for one"
                                            .formatted(
                                                    Quantities.bytes(ranks.getSum()),
                                                    ranks.getCount(),
                                                    Quantities.bytes(ranks.getMax())),
                            "try smaller micro-batches (more batch.micro-batches), a smaller model, or schedule.recompute = full"));
        }
    }

    /** No other process has the tokens of this program. */
    private void requireOneProcess() {
        if (asked.tokens().isPresent()
                && draft.sound("pipeline.processes")
                && config.pipeline().processes() != PipelineSection.Processes.SINGLE) {
            problems.add(
                    loaded.problem(
                            "pipeline.processes",
                            "single where a program gives the tokens",
                            "per-stage",
                            "leave it out, or write the tokens into files"));
        }
    }

    /** Orders that are files say by themselves whether they cut sequences. */
    private void requireWholeSequences() {
        int slices = schedule.map(proved -> proved.training().shape().slices()).orElse(1);
        if (slices == 1 || config.schedule().file().isEmpty()) {
            return;
        }
        if (sizes.isPresent() && sizes.get().shape().block().encoder() != null) {
            refuseSlices(
                    slices,
                    "model.family = %s: a token needs the keys of later ones"
                            .formatted(config.model().family()));
        }
        if (config.parallel().mesh().isThere()) {
            refuseSlices(slices, "parallel.tensor-mesh is set: its rows are whole sequences");
        }
    }

    private void refuseSlices(int slices, String where) {
        problems.add(
                loaded.problem(
                        "schedule.file",
                        "an order that does not slice tokens where " + where,
                        slices + " slices",
                        "try schedule.kind = 1f1b"));
    }

    private void requireHeldOut() {
        if (asked.evaluateOnly() && data.isPresent() && !data.get().hasHeldOut()) {
            problems.add(
                    loaded.problem(
                            "data.validation-fraction",
                            "held-out text to evaluate on",
                            "none",
                            "try --set data.validation-fraction=0.05"));
        }
    }

    private void requireTrainingText() {
        if (!asked.evaluateOnly() && data.isPresent() && data.get().trainingTokens() == 0) {
            problems.add(
                    loaded.problem(
                            "data.validation-fraction",
                            "text to train on",
                            "all of it held out",
                            "try data.validation-fraction = 0.05"));
        }
    }

    /** Where nothing counts, a run would learn nothing and say that its loss is 0. */
    private void requireCountedTargets() {
        if (data.isEmpty() || !data.get().masked() || !draft.sound("model.context", "batch")) {
            return;
        }
        TrainingData read = data.get();
        Optional<CountedTargets> counted = read.counted();
        if (!asked.evaluateOnly() && counted.isPresent() && draft.sound("run.steps")) {
            requireReached(counted.get());
        }
        boolean evaluates =
                draft.sound("evaluation")
                        && read.hasHeldOut()
                        && (asked.evaluateOnly() || config.evaluation().every() > 0);
        long batches = Math.min(config.evaluation().batches(), read.heldOutBatches());
        if (evaluates && read.heldOutTargets(batches * config.batch().sequences()) == 0) {
            problems.add(
                    loaded.problem(
                            "data.validation-fraction",
                            "held-out text with answers, whose loss is measured",
                            "none in the %,d batches of an evaluation".formatted(batches),
                            "hold out more, raise evaluation.batches, or set evaluation.every = 0"));
        }
    }

    private void requireReached(CountedTargets counted) {
        if (counted.reached()) {
            return;
        }
        String chats =
                counted.chats() == 0
                        ? ""
                        : ": %,d of %,d chats have no message of the role assistant"
                                .formatted(counted.silentChats(), counted.chats());
        problems.add(
                loaded.problem(
                        "data.loss",
                        "text with targets that count",
                        counted.targets() == 0
                                ? "none in the whole text to train on" + chats
                                : "%,d, but none in the rows of run.steps = %d"
                                        .formatted(counted.targets(), config.run().steps()),
                        counted.targets() == 0
                                ? "check the roles, or try data.loss = all"
                                : "try a larger model.context, shorter texts or more steps"));
    }

    /** Both ends of every link have room for as many. */
    private void requireRowsThatComeAgain() {
        int wanted = config.dataPlane().deltaRows();
        boolean known =
                !asked.evaluateOnly()
                        && data.isPresent()
                        && draft.sound("data-plane", "data.packing", "model.context");
        if (known && config.dataPlane().sendsDeltas() && wanted > data.get().rows()) {
            problems.add(
                    loaded.problem(
                            "data-plane.delta-rows",
                            "at most the %,d rows to train on".formatted(data.get().rows()),
                            Integer.toString(wanted),
                            "set it to %d or less".formatted(data.get().rows())));
        }
    }

    private void requireFaultsAtKnownOps() {
        if (schedule.isPresent() && draft.sound("fault")) {
            problems.addAll(ConfiguredFaults.problems(loaded, schedule.get().training()));
        }
    }

    private void requireStepsToGo(StartingPoint from) {
        boolean known = !asked.evaluateOnly() && draft.sound("run.steps");
        if (known && from.completedSteps() > config.run().steps()) {
            problems.add(
                    loaded.problem(
                            "run.steps",
                            "at least the %d steps of the checkpoint to go on from"
                                    .formatted(from.completedSteps()),
                            Integer.toString(config.run().steps()),
                            "raise it, or start a new run without --resume"));
        }
    }

    private void requireReachableDump() {
        if (asked.dump().isEmpty()) {
            return;
        }
        DumpRequest dump = asked.dump().get();
        long done = start.map(StartingPoint::completedSteps).orElse(0L);
        if (dump.step() <= done) {
            problems.add(
                    Problem.atOption(
                            "--dump-gradients",
                            "a step that is still to come: --resume goes on with step %d"
                                    .formatted(done + 1),
                            Long.toString(dump.step()),
                            "name a later step, or start a new run without --resume"));
        }
        if (draft.sound("run.steps") && dump.step() > config.run().steps()) {
            problems.add(
                    Problem.atOption(
                            "--dump-gradients",
                            "a step up to run.steps = " + config.run().steps(),
                            Long.toString(dump.step()),
                            "name an earlier step or raise run.steps"));
        }
    }

    /** Goes on after a part that cannot be, so that its problems are told with the others'. */
    private <T> Optional<T> attempt(Supplier<T> part) {
        try {
            return Optional.of(part.get());
        } catch (ConfigException e) {
            problems.addAll(e.problems());
            return Optional.empty();
        }
    }
}
