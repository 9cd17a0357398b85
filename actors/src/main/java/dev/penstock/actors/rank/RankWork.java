package dev.penstock.actors.rank;

import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.LinkTraffic;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.fault.StepMoment;
import dev.penstock.actors.mirror.HeldMirror;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.mirror.MirrorProgress;
import dev.penstock.actors.mirror.RankMirrors;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Device;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The device and stages of a rank, which live as long as it does, and its links, which live for an
 * epoch. Used by the shard's thread only.
 */
public final class RankWork implements AutoCloseable {
    private static final long NOTHING = -1;

    private final int rank;
    private RankResources resources;
    private final Runnable moved;
    private final RankFaults faults;
    private final Device device;
    private final Map<Integer, StageProgram> stages = new TreeMap<>();
    private RankMirrors mirrors;
    private CodingState coding = CodingState.NONE;
    private @Nullable RankLinks links;
    private long restoredStep;
    private long readyStep = NOTHING;
    private StepKind kind = StepKind.TRAIN;
    private long step;
    private long pass;

    /** The result of the ops of the pass; null before they are done. */
    private @Nullable StepResult result;

    private boolean mirrored;

    /**
     * Opens the device; there are no stages until {@link #restore}, and no links until then.
     *
     * @param moved is told whenever a part of what follows on the ops is done
     */
    RankWork(int rank, RankResources resources, Runnable moved) {
        this.rank = rank;
        this.moved = moved;
        this.resources = resources;
        this.faults =
                resources
                        .faults()
                        .forRank(rank, resources.plan().grid().placeOf(rank), ownStages());
        this.device = resources.devices().open(rank);
        this.mirrors = new RankMirrors(rank, resources.plan(), device, resources.mirrors());
    }

    /**
     * Follows a plan of the run: stages and mirrors of another layout are gone, and {@link
     * #restore} builds them anew. Call it only without links.
     *
     * @throws RuntimeException if this process cannot follow it
     */
    void follow(PlanRevision revision) {
        if (revision.equals(resources.plan().revision())) {
            return;
        }
        RankResources other = resources.following(revision);
        boolean keeps = other.plan().layout().equals(resources.plan().layout());
        if (keeps) {
            resources = other;
            mirrors.follow(other.plan());
            return;
        }
        mirrors.close();
        closeStages();
        resources = other;
        mirrors = new RankMirrors(rank, resources.plan(), device, resources.mirrors());
    }

    /** The plan that this rank follows. */
    RunPlan plan() {
        return resources.plan();
    }

    private List<Integer> ownStages() {
        return resources.plan().stagesOf(rank);
    }

    /**
     * Brings stages and mirrors to the point from which the run continues; new stages are built in
     * the memory of the previous ones. Call it only without links.
     *
     * @throws dev.penstock.actors.spi.DamagedCheckpointException if there is no such point; there
     *     are no stages then
     */
    void restore(StateSource start, MirrorLayout layout) {
        StageProgramFactory programs = resources.programs();
        switch (start) {
            case StateSource.Kept _ -> mirrors.keep(layout, withLinks(programs.blank()));
            case StateSource.Fresh _ ->
                    build(layout, programs, resources.plan().steps().completed());
            case StateSource.FromCheckpoint(long from) ->
                    build(layout, programs.startingAt(from), from);
            case StateSource.FromMirror(int holder, long from) -> {
                buildStages(programs.blank());
                HeldMirror mirror = resources.mirrors().find(holder, rank);
                restoredStep = mirror.copyInto(from, trained(), device.kernels());
                readyStep = restoredStep < from ? from : NOTHING;
                mirrors.keep(layout, withLinks(programs.blank()));
                mirrors.serve(trained(), restoredStep, readyStep);
            }
        }
    }

    private void build(MirrorLayout layout, StageBuilder programs, long from) {
        restoredStep = from;
        readyStep = NOTHING;
        mirrors.close(); // before the stages, in the order of allocation
        buildStages(programs);
        mirrors.build(layout, withLinks(programs), from);
        mirrors.serve(trained(), restoredStep, readyStep);
    }

    private void buildStages(StageBuilder programs) {
        closeStages();
        programs.createAll(ownStages(), resources.plan().grid().placeOf(rank), device)
                .forEach(stage -> stages.put(stage.stage(), stage));
        coding =
                CodingState.build(
                        resources.plan().grid().placeOf(rank),
                        resources.plan(),
                        stages.values().stream().map(CodingState.OfStage::of).toList(),
                        MemoryUse.BUFFERS,
                        device,
                        programs);
    }

    /** Where no links keep anything, a stage's mirror is all. */
    private StageBuilder withLinks(StageBuilder programs) {
        RunPlan plan = resources.plan();
        return plan.codecs().keeps()
                ? new MirrorsWithLinks(programs, plan, stages.values().iterator().next())
                : programs;
    }

    private List<TrainedState> trained() {
        return stages.values().stream()
                .map(stage -> coding.with(stage.stage(), stage.trained()))
                .toList();
    }

    /** Returns the training steps that the stages had applied when they were built. */
    long restoredStep() {
        return restoredStep;
    }

    /**
     * Returns the step whose gradients came with the stages and wait for its commit; -1 if none
     * did.
     */
    long readyStep() {
        return readyStep;
    }

    /** Returns the states that this rank holds for others. */
    List<RankEvent.HeldState> heldMirrors() {
        return states(rank, resources.plan(), mirrors.held());
    }

    /**
     * What this rank's own state is to those that hold the same is said once, by its own number.
     */
    static List<RankEvent.HeldState> states(int rank, RunPlan plan, List<HeldMirror> held) {
        return held.stream()
                .map(
                        mirror ->
                                new RankEvent.HeldState(
                                        plan.isCopy(rank, mirror.rank()) ? rank : mirror.rank(),
                                        mirror.committedStep(),
                                        mirror.readyStep()))
                .distinct()
                .toList();
    }

    /** Returns what stages hold of the training step that was begun last and is not finished. */
    List<RankEvent.FoldedStage> folded() {
        return stages.values().stream()
                .map(
                        stage ->
                                new RankEvent.FoldedStage(
                                        stage.stage(),
                                        step,
                                        stage.folded().stream().boxed().toList()))
                .filter(stage -> kind == StepKind.TRAIN && !stage.microBatches().isEmpty())
                .toList();
    }

    /** Opens the links of an epoch, with the mirrors that {@link #restore} brought. */
    void connect(
            EpochLinks opened,
            RankLocations locations,
            MirrorLayout layout,
            FrameListener listener,
            Supplier<RankWaits> waits) {
        if (!opened.link().isEmpty()) {
            resources.dataPlane().relink(opened.link());
        }
        links =
                new RankLinks(
                        rank,
                        opened.epoch(),
                        locations,
                        resources,
                        device,
                        stages,
                        coding,
                        scope -> mirrors.connect(layout, trained(), scope),
                        faults,
                        listener,
                        waits);
    }

    /** Closes the links, if any are open. */
    void disconnect() {
        RankLinks open = links;
        links = null;
        mirrors.disconnect();
        if (open != null) {
            open.close();
        }
    }

    /** Tells the stages that the pass under way, if one is, will not be finished. */
    void interrupt(String cause) {
        stages.values().forEach(stage -> stage.interrupt(cause));
    }

    private RankLinks links() {
        if (links == null) {
            throw new DataPlaneException("rank %d has no links".formatted(rank));
        }
        return links;
    }

    /**
     * Returns what says, on any thread, what is on its way to this rank by plan, until links are
     * opened anew.
     */
    Supplier<Optional<String>> underWay() {
        return links().endpoint()::underWay;
    }

    /** Returns what the links have carried since they were opened. */
    List<LinkTraffic> traffic() {
        return links().endpoint().traffic();
    }

    /** Returns the interpreter of the pass that began last; call it only with links. */
    OpInterpreter interpreter() {
        return links().interpreter(kind);
    }

    /** Returns how many ops a pass that trains has; call it only with links. */
    int trainingOps() {
        return links().interpreter(StepKind.TRAIN).times().starts().length;
    }

    Device device() {
        return device;
    }

    /** What the rank holds memory for: of its device, and of the host for its stages. */
    List<MemoryUse> usesOfMemory() {
        List<MemoryUse> uses = new ArrayList<>(MemoryUse.of(device.memory()));
        Map<String, Long> elsewhere = new TreeMap<>();
        for (StageProgram stage : stages.values()) {
            for (MemoryUse use : stage.hostMemory()) {
                elsewhere.merge(use.use(), use.peakBytes(), Long::sum);
            }
        }
        elsewhere.forEach((use, bytes) -> uses.add(new MemoryUse(use, bytes)));
        return uses;
    }

    void begin(RankCommand.BeginPass begin) {
        kind = begin.kind();
        step = begin.step();
        pass = begin.pass();
        result = null;
        faults.beginPass(kind, step);
        interpreter().begin(pass, begin.leftOut());
        links().beginPass();
        mirrors.beginPass();
        for (StageProgram stage : stages.values()) {
            stage.scaleLoss(begin.lossScale());
            if (begin.leftOut().isEmpty()) {
                stage.beginStep(kind, step);
            } else {
                stage.resumeStep(step);
            }
        }
    }

    /** Returns what this rank has sent to others in the pass. */
    StepTraffic sent() {
        return links().sentInPass(plan().isApart(step))
                .plus(interpreter().sent())
                .plus(mirrors.sent());
    }

    /** Returns whether the ops are done and, in a training step, all mirrors have their part. */
    boolean isFinished() {
        return result != null && mirrored;
    }

    int position() {
        return links == null ? 0 : interpreter().position();
    }

    /**
     * Returns whether {@link #advance} would compute, rather than check whether something arrived.
     */
    boolean computesNext() {
        return interpreter().isFinished() ? result == null : interpreter().computesNext();
    }

    /** Tries the op at the program counter, or the work that follows the last op. */
    Progress advance() {
        if (!interpreter().isFinished()) {
            return interpreter().advance();
        }
        if (result == null) {
            result = finishOps();
            mirrored = kind == StepKind.EVALUATE;
            if (!mirrored) {
                mirrors.begin(pass, step);
            }
        }
        return mirrored ? Progress.DONE : mirror();
    }

    private Progress mirror() {
        MirrorProgress progress = mirrors.advance(links().endpoint());
        return switch (progress) {
            case DONE -> {
                mirrored = true;
                yield Progress.DONE;
            }
            case MOVED -> Progress.AGAIN;
            case WAITS_FOR_PEER -> Progress.WAITS_FOR_FRAME;
            case WAITS_FOR_LINK -> Progress.WAITS_FOR_LINK;
        };
    }

    /** Returns the result of the finished pass. */
    StepResult result() {
        return Objects.requireNonNull(result, "the pass is not finished");
    }

    private StepResult finishOps() {
        var loss = OptionalDouble.empty();
        List<TensorNorm> norms = new ArrayList<>();
        var overflow = OptionalInt.empty();
        var accuracy = OptionalDouble.empty();
        for (StageProgram stage : stages.values()) {
            StepResult part = stage.finishStep();
            moved.run();
            loss = part.loss().isPresent() ? part.loss() : loss;
            norms.addAll(part.norms());
            overflow = overflow.isPresent() ? overflow : part.overflow();
            accuracy = part.accuracy().isPresent() ? part.accuracy() : accuracy;
        }
        if (kind == StepKind.TRAIN) {
            coding.note();
            faults.at(StepMoment.READY, step);
        }
        return new StepResult(loss, norms, overflow, accuracy);
    }

    void update(RankCommand.Commit commit) {
        long committedStep = commit.step();
        OptionalDouble applied = commit.clipFactor();
        faults.at(StepMoment.OPTIMIZER, committedStep);
        if (applied.isPresent()) {
            double clipFactor = applied.getAsDouble();
            stages.values().forEach(stage -> stage.skipped(commit.skipped()));
            for (StageProgram stage : stages.values()) {
                stage.update(committedStep, clipFactor);
                moved.run();
            }
            coding.commit(device.kernels());
        }
        mirrors.update(committedStep, applied, commit.skipped());
        faults.at(StepMoment.UPDATED, committedStep);
    }

    List<CheckpointStore.ShardFile> save(long savedStep, int epoch) {
        faults.at(StepMoment.CHECKPOINT, savedStep);
        RankPlace place = resources.plan().grid().placeOf(rank);
        List<CheckpointStore.ShardFile> files = new ArrayList<>();
        for (StageProgram stage : stages.values()) {
            List<NamedTensor> state =
                    Stream.concat(stage.state().stream(), coding.state(stage.stage()).stream())
                            .filter(held -> held.piece().elements() > 0)
                            .toList();
            if (!state.isEmpty()) {
                files.add(
                        resources
                                .checkpoints()
                                .writeShard(savedStep, epoch, stage.stage(), place, state));
            }
        }
        faults.at(StepMoment.SAVED, savedStep);
        return files;
    }

    /** Returns where the rank is, for error messages: {@code step 7, at 1F2}. */
    String place() {
        String pass = kind == StepKind.TRAIN ? "step " + step : "held-out batch " + step;
        Op op = links == null ? null : interpreter().place();
        return op == null
                ? pass
                : pass + ", at " + OpText.print(op, resources.plan().training().shape());
    }

    private void closeStages() {
        coding.close();
        coding = CodingState.NONE;
        List<StageProgram> built = new ArrayList<>(stages.values());
        stages.clear();
        built.reversed().forEach(StageProgram::close);
    }

    @Override
    public void close() {
        try (device) {
            try {
                disconnect();
            } finally {
                mirrors.close();
                closeStages();
            }
        }
    }
}
