package dev.penstock.actors.shard;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.fault.StepMoment;
import dev.penstock.actors.mirror.MirrorExchange;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.mirror.MirrorRegistry;
import dev.penstock.actors.mirror.RankMirrors;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A rank's device, stages, buffers, endpoint and interpreters: opened together, closed together in
 * reverse order. Used by the shard's thread only.
 */
final class RankWork implements AutoCloseable {
    private final RunPlan plan;
    private final CheckpointStore checkpoints;
    private final RankFaults faults;
    private final Device device;
    private final Map<Integer, StageProgram> stages = new TreeMap<>();
    private final DeviceScope boundary;
    private final RankMirrors mirrors;
    private final Endpoint endpoint;
    private final Map<StepKind, OpInterpreter> interpreters = new EnumMap<>(StepKind.class);
    private final List<AutoCloseable> open = new ArrayList<>();
    private OpInterpreter interpreter;
    private StepKind kind = StepKind.TRAIN;
    private long step;
    private long pass;

    /** What the ops of the pass came to; null before they are done. */
    private @Nullable StepResult result;

    private boolean mirrored;

    RankWork(int rank, RankResources resources, FrameListener listener) {
        this.plan = resources.plan();
        this.checkpoints = resources.checkpoints();
        List<Integer> ownStages = plan.training().placement().stagesOf(rank);
        this.faults = resources.faults().forRank(rank, ownStages);
        try {
            this.device = opened(resources.devices().open(rank));
            for (int stage : ownStages) {
                stages.put(stage, opened(resources.programs().create(stage, device)));
            }
            var layout = MirrorLayout.of(plan);
            this.mirrors = opened(new RankMirrors(rank, plan, device, new MirrorRegistry()));
            mirrors.build(layout, resources.programs(), plan.steps().completed());
            this.boundary = opened(device.memory().child("boundary", Long.MAX_VALUE));
            var buffers = new BoundaryBuffers(rank, plan, stages, boundary);
            List<Inbound> inbound = new ArrayList<>(buffers.inbound());
            List<Outbound> outbound = new ArrayList<>(buffers.outbound());
            Map<Integer, List<GradientExchange>> exchanges = exchanges(inbound, outbound);
            var own = stages.values().stream().map(StageProgram::trained).toList();
            MirrorExchange exchange = mirrors.connect(layout, own, boundary);
            inbound.addAll(exchange.inbound());
            outbound.addAll(exchange.outbound());
            this.endpoint = opened(resources.dataPlane().open(rank, inbound, outbound, listener));
            for (StepKind each : StepKind.values()) {
                interpreters.put(
                        each,
                        new OpInterpreter(
                                plan.schedule(each),
                                rank,
                                stages,
                                exchanges,
                                buffers,
                                endpoint,
                                faults));
            }
            this.interpreter = interpreterOf(StepKind.TRAIN);
        } catch (RuntimeException e) {
            try {
                close();
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    /** By stage; adds the channels of those that cross ranks. */
    private Map<Integer, List<GradientExchange>> exchanges(
            List<Inbound> inbound, List<Outbound> outbound) {
        Map<Integer, List<GradientExchange>> exchanges = new TreeMap<>();
        for (StageProgram stage : stages.values()) {
            for (SharedGradient shared : stage.sharedGradients()) {
                int peer = SharedGradientExchange.peerOf(stage.stage(), shared);
                StageProgram here = stages.get(peer);
                if (here == null) {
                    var exchange =
                            new SharedGradientExchange(
                                    stage.stage(), shared, plan, boundary, device.kernels());
                    inbound.add(exchange.inbound());
                    outbound.add(exchange.outbound());
                    add(exchanges, stage.stage(), exchange);
                } else if (stage.stage() < peer) {
                    var sum = new LocalGradientSum(shared, named(here, shared), device.kernels());
                    add(exchanges, stage.stage(), sum);
                    add(exchanges, peer, sum);
                }
            }
        }
        return exchanges;
    }

    private static void add(
            Map<Integer, List<GradientExchange>> exchanges, int stage, GradientExchange exchange) {
        exchanges.computeIfAbsent(stage, _ -> new ArrayList<>()).add(exchange);
    }

    private static SharedGradient named(StageProgram stage, SharedGradient other) {
        return stage.sharedGradients().stream()
                .filter(shared -> shared.name().equals(other.name()))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalStateException(
                                        "stage %d does not know that it shares %s"
                                                .formatted(stage.stage(), other.name())));
    }

    private <T extends AutoCloseable> T opened(T resource) {
        open.add(resource);
        return resource;
    }

    private OpInterpreter interpreterOf(StepKind wanted) {
        OpInterpreter found = interpreters.get(wanted);
        if (found == null) {
            throw new IllegalStateException("no program for " + wanted);
        }
        return found;
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
        interpreter = interpreterOf(newKind);
        faults.beginPass(newKind, newStep);
        interpreter.begin(newPass);
        mirrors.beginPass();
        stages.values().forEach(stage -> stage.beginStep(newKind, newStep));
    }

    /** Whether the ops are done and, in a training step, every mirror concerned has its part. */
    boolean isFinished() {
        return result != null && mirrored;
    }

    int position() {
        return interpreter.position();
    }

    /** Tries the op at the program counter, or what comes after the last one. */
    Progress advance() {
        if (!interpreter.isFinished()) {
            return interpreter.advance();
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
        return switch (mirrors.advance(endpoint)) {
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
                                        checkpoints.writeShard(
                                                savedStep, stage.stage(), stage.state()))
                        .toList();
        faults.at(StepMoment.SAVED, savedStep);
        return files;
    }

    long[] opStartNanos() {
        return interpreter.startNanos();
    }

    long[] opEndNanos() {
        return interpreter.endNanos();
    }

    long peakBytes() {
        return device.memory().peakBytes();
    }

    /** Where the rank is, for error messages: {@code step 7, at 1F2}. */
    String place() {
        String pass = kind == StepKind.TRAIN ? "step " + step : "held-out batch " + step;
        Op op = interpreter.current();
        return op == null ? pass : pass + ", at " + OpText.print(op, plan.training().shape());
    }

    @Override
    public void close() {
        RuntimeException first = null;
        for (AutoCloseable resource : open.reversed()) {
            try {
                resource.close();
            } catch (Exception e) {
                if (first == null) {
                    first = new IllegalStateException("closing a rank: " + e.getMessage(), e);
                } else {
                    first.addSuppressed(e);
                }
            }
        }
        open.clear();
        if (first != null) {
            throw first;
        }
    }
}
