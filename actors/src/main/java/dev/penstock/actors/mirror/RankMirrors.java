package dev.penstock.actors.mirror;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A rank's share in the mirrors: those that it holds, which live as long as it does or until the
 * layout gives them to another, and the exchange, which lives for an epoch. For ranks that hold
 * just what it does, its own state is a mirror that costs nothing. The shard's thread only.
 */
public final class RankMirrors implements AutoCloseable {
    private final int rank;
    private RunPlan plan;
    private final Device device;
    private final MirrorRegistry registry;
    private final Map<Integer, HeldMirror> held = new TreeMap<>();

    /** The rank's own state, of others that hold the same. */
    private final List<HeldMirror> copies = new ArrayList<>();

    /**
     * Held by another rank in this epoch: kept while a rank of this process may start from them.
     */
    private final List<HeldMirror> leaving = new ArrayList<>();

    private @Nullable MirrorExchange exchange;

    /**
     * @param device of this rank; the mirrors are allocated in its memory
     * @param registry of this process, where ranks that take over find the mirrors
     */
    public RankMirrors(int rank, RunPlan plan, Device device, MirrorRegistry registry) {
        this.rank = rank;
        this.plan = plan;
        this.device = device;
        this.registry = registry;
    }

    /** Goes on with a plan of the same layout. */
    public void follow(RunPlan other) {
        plan = other;
    }

    /**
     * Builds the mirrors anew, with the values that the ranks themselves start from.
     *
     * @param programs builds them
     * @param step that these values are after
     */
    public void build(MirrorLayout layout, StageBuilder programs, long step) {
        close();
        for (int other : layout.heldBy(rank)) {
            hold(HeldMirror.build(other, plan, programs, device, step));
        }
    }

    /**
     * Goes on with the mirrors that are here, adds those that the layout brings and lets go of
     * others when the next pass begins.
     *
     * @param programs builds empty ones, to be filled
     */
    public void keep(MirrorLayout layout, StageBuilder programs) {
        List<Integer> wanted = layout.heldBy(rank);
        for (int other : List.copyOf(held.keySet())) {
            if (!wanted.contains(other)) {
                leaving.add(held.remove(other));
            }
        }
        for (int other : wanted) {
            if (!held.containsKey(other)) {
                hold(HeldMirror.build(other, plan, programs, device, HeldMirror.NOTHING));
            }
        }
    }

    /**
     * Lets ranks that hold the same start from this rank's own state.
     *
     * @param own state of its stages, rising; nobody else changes it than commits do
     * @param step that it is after
     * @param ready the step whose gradients wait in it for their commit, or {@link
     *     HeldMirror#NOTHING}
     */
    public void serve(List<TrainedState> own, long step, long ready) {
        for (int other : plan.servedBy(rank)) {
            HeldMirror copy = HeldMirror.of(other, plan, own, step);
            if (ready != HeldMirror.NOTHING) {
                copy.arrived(MirrorPart.GRADIENTS, ready);
            }
            copies.add(copy);
            registry.publish(rank, copy);
        }
    }

    private void hold(HeldMirror mirror) {
        held.put(mirror.rank(), mirror);
        registry.publish(rank, mirror);
    }

    /**
     * Prepares for the links of an epoch.
     *
     * @param own state of this rank's stages, rising
     * @param scope for blocks on their way, closed after the links
     * @return with the channels that the links need
     */
    public MirrorExchange connect(MirrorLayout layout, List<TrainedState> own, DeviceScope scope) {
        var connected =
                new MirrorExchange(
                        rank, layout, own, List.copyOf(held.values()), scope, device.kernels());
        exchange = connected;
        return connected;
    }

    /** The links are closed. */
    public void disconnect() {
        exchange = null;
    }

    /** A pass begins, so every rank of the run is open and nobody starts from a mirror. */
    public void beginPass() {
        leaving.forEach(this::drop);
        leaving.clear();
        copies.forEach(copy -> copy.incomplete(MirrorPart.GRADIENTS));
    }

    /** The ops of a training pass are done: its gradients go out and come in. */
    public void begin(long pass, long step) {
        copies.forEach(copy -> copy.arrived(MirrorPart.GRADIENTS, step));
        connected().begin(pass, step);
    }

    /** Moves a part of what is on its way. */
    public MirrorProgress advance(Endpoint endpoint) {
        return connected().advance(endpoint);
    }

    /** What this rank has sent to its own mirror since {@link #begin}. */
    public StepTraffic sent() {
        return new StepTraffic(0, 0, 0, 0, 0, 0, 0, connected().sentBytes(), 0);
    }

    /**
     * Applies a commit to the mirrors, after the rank's own stages; one that was applied before
     * changes nothing.
     *
     * @param clipFactor empty if nothing of the step is applied
     * @param skipped steps before it of which nothing was applied
     */
    public void update(long step, OptionalDouble clipFactor, long skipped) {
        held().forEach(mirror -> mirror.update(step, clipFactor, skipped));
    }

    /** The mirrors that are here. */
    public List<HeldMirror> held() {
        return Stream.concat(held.values().stream(), copies.stream()).toList();
    }

    private MirrorExchange connected() {
        MirrorExchange now = exchange;
        if (now == null) {
            throw new IllegalStateException("rank %d has no links".formatted(rank));
        }
        return now;
    }

    private void drop(HeldMirror mirror) {
        registry.withdraw(rank, mirror);
        mirror.close();
    }

    /** Frees all mirrors. */
    @Override
    public void close() {
        beginPass();
        held().forEach(this::drop);
        held.clear();
        copies.clear();
    }
}
