package dev.penstock.actors.shard;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.fault.StepMoment;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.mirror.MirrorRegistry;
import dev.penstock.actors.mirror.RankMirrors;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.cuda.device.Device;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A rank's device and stages, which live as long as it does, and its links, which live for an
 * epoch. Used by the shard's thread only.
 */
final class RankWork implements AutoCloseable {
    private final int rank;
    private final RankResources resources;
    private final RankFaults faults;
    private final Device device;
    private final Map<Integer, StageProgram> stages = new TreeMap<>();
    private final RankMirrors mirrors;
    private MirrorLayout layout;
    private @Nullable RankLinks links;
    private long restoredStep;
    private StepKind kind = StepKind.TRAIN;
    private long step;
    private long pass;

    /** What the ops of the pass came to; null before they are done. */
    private @Nullable StepResult result;

    private boolean mirrored;

    /** Opens the device and builds the stages; without links until {@link #connect}. */
    RankWork(int rank, RankResources resources, RankStart start) {
        this.rank = rank;
        this.resources = resources;
        this.layout = MirrorLayout.of(resources.plan());
        this.faults = resources.faults().forRank(rank, ownStages());
        this.device = resources.devices().open(rank);
        this.mirrors = new RankMirrors(rank, resources.plan(), device, new MirrorRegistry());
        try {
            restore(start);
        } catch (RuntimeException | Error e) {
            closeAfter(e);
            throw e;
        }
    }

    private List<Integer> ownStages() {
        return resources.plan().training().placement().stagesOf(rank);
    }

    private void closeAfter(Throwable e) {
        try {
            close();
        } catch (RuntimeException second) {
            e.addSuppressed(second);
        }
    }

    /** Builds the stages, in the room of those that were there. Only without links. */
    void restore(RankStart start) {
        StageProgramFactory programs =
                switch (start) {
                    case RankStart.Fresh _ -> resources.programs();
                    case RankStart.FromCheckpoint(long from) ->
                            resources.programs().startingAt(from);
                    case RankStart.FromMirror _, RankStart.Kept _ ->
                            throw new IllegalArgumentException(
                                    "rank %d cannot build its stages from %s"
                                            .formatted(rank, start));
                };
        restoredStep =
                start instanceof RankStart.FromCheckpoint(long from)
                        ? from
                        : resources.plan().steps().completed();
        closeStages();
        for (int stage : ownStages()) {
            stages.put(stage, programs.create(stage, device));
        }
        mirrors.build(layout, programs, restoredStep);
    }

    /** Training steps that the stages had seen when they were built. */
    long restoredStep() {
        return restoredStep;
    }

    /**
     * Opens the links of an epoch.
     *
     * @param link where the media driver is; empty if the data plane knows
     */
    void connect(int epoch, String link, FrameListener listener) {
        if (!link.isEmpty()) {
            resources.dataPlane().relink(link);
        }
        links =
                new RankLinks(
                        rank,
                        epoch,
                        resources.plan(),
                        device,
                        stages,
                        mirrors,
                        layout,
                        faults,
                        resources.dataPlane(),
                        listener);
    }

    /** Closes the links, if there are any. */
    void disconnect() {
        RankLinks open = links;
        links = null;
        mirrors.disconnect();
        if (open != null) {
            open.close();
        }
    }

    private RankLinks links() {
        if (links == null) {
            throw new DataPlaneException("rank %d has no links".formatted(rank));
        }
        return links;
    }

    private OpInterpreter interpreter() {
        return links().interpreter(kind);
    }

    String deviceName() {
        return device.name();
    }

    String deviceFingerprint() {
        return device.fingerprint();
    }

    void begin(StepKind newKind, long newStep, long newPass) {
        kind = newKind;
        step = newStep;
        pass = newPass;
        result = null;
        faults.beginPass(newKind, newStep);
        interpreter().begin(newPass);
        mirrors.beginPass();
        stages.values().forEach(stage -> stage.beginStep(newKind, newStep));
    }

    /** Whether the ops are done and, in a training step, every mirror concerned has its part. */
    boolean isFinished() {
        return result != null && mirrored;
    }

    int position() {
        return links == null ? 0 : interpreter().position();
    }

    /** Tries the op at the program counter, or what comes after the last one. */
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
        return switch (mirrors.advance(links().endpoint())) {
            case DONE -> {
                mirrored = true;
                yield Progress.DONE;
            }
            case MOVED -> Progress.AGAIN;
            case WAITS_FOR_PEER -> Progress.WAITS_FOR_FRAME;
            case WAITS_FOR_LINK -> Progress.WAITS_FOR_LINK;
        };
    }

    /** What the finished pass came to. */
    StepResult result() {
        return Objects.requireNonNull(result, "the pass is not finished");
    }

    private StepResult finishOps() {
        var loss = OptionalDouble.empty();
        List<TensorNorm> norms = new ArrayList<>();
        for (StageProgram stage : stages.values()) {
            StepResult part = stage.finishStep();
            loss = part.loss().isPresent() ? part.loss() : loss;
            norms.addAll(part.norms());
        }
        if (kind == StepKind.TRAIN) {
            faults.at(StepMoment.READY, step);
        }
        return new StepResult(loss, norms);
    }

    void update(long committedStep, double clipFactor) {
        faults.at(StepMoment.OPTIMIZER, committedStep);
        stages.values().forEach(stage -> stage.update(committedStep, clipFactor));
        mirrors.update(committedStep, clipFactor);
        faults.at(StepMoment.UPDATED, committedStep);
    }

    List<CheckpointStore.ShardFile> save(long savedStep) {
        faults.at(StepMoment.CHECKPOINT, savedStep);
        List<CheckpointStore.ShardFile> files =
                stages.values().stream()
                        .map(
                                stage ->
                                        resources
                                                .checkpoints()
                                                .writeShard(
                                                        savedStep, stage.stage(), stage.state()))
                        .toList();
        faults.at(StepMoment.SAVED, savedStep);
        return files;
    }

    long[] opStartNanos() {
        return interpreter().startNanos();
    }

    long[] opEndNanos() {
        return interpreter().endNanos();
    }

    long peakBytes() {
        return device.memory().peakBytes();
    }

    /** Where the rank is, for error messages: {@code step 7, at 1F2}. */
    String place() {
        String pass = kind == StepKind.TRAIN ? "step " + step : "held-out batch " + step;
        Op op = links == null ? null : interpreter().current();
        return op == null
                ? pass
                : pass + ", at " + OpText.print(op, resources.plan().training().shape());
    }

    private void closeStages() {
        List<StageProgram> built = new ArrayList<>(stages.values());
        stages.clear();
        mirrors.close();
        built.reversed().forEach(StageProgram::close);
    }

    @Override
    public void close() {
        try (device) {
            try {
                disconnect();
            } finally {
                closeStages();
            }
        }
    }
}
