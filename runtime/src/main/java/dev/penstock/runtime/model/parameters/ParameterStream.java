package dev.penstock.runtime.model.parameters;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.swap.SwappedGroup;
import dev.penstock.schedules.ir.LayerRange;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Lets a stage's layers find their parameters. If these are sharded, the current layer and a number
 * of layers ahead of it are gathered, unless an op of the schedule has done so:
 *
 * <pre>
 *   two ahead:  enter 0    enter 1    enter 2 ...
 *   begun       0 1 2      3          4
 *   released          0          1          2
 * </pre>
 */
public final class ParameterStream {
    private final Map<ParameterGroup, ParameterGatherer.Group> gathers = new LinkedHashMap<>();
    private final @Nullable ParameterUnits units;
    private final ParameterGatherer gatherer = new ParameterGatherer();
    private final boolean streams;
    private final boolean loads;
    private final int ahead;

    /** What ops have gathered and not released yet. */
    private final Map<LayerRange, List<ParameterGatherer.Group>> stays = new HashMap<>();

    private final List<Integer> forward;
    private final List<Integer> backward;
    private final List<Integer> backwardWeight;
    private final List<Integer> evaluation;
    private List<Integer> order = List.of();
    private int at;
    private int held;

    private ParameterStream(@Nullable ParameterUnits units, Sharding sharding, int ahead) {
        this.units = units;
        this.streams = sharding.parameters();
        this.loads = sharding.swapped();
        this.ahead = ahead;
        forward = units == null ? List.of() : units.forward();
        backward = units == null ? List.of() : units.backward();
        backwardWeight = units == null ? List.of() : units.backwardWeight();
        evaluation = units == null ? List.of() : units.evaluation();
    }

    /** A stream of a stage whose parameters are all resident. */
    public static ParameterStream resident() {
        return new ParameterStream(null, Sharding.NONE, 0);
    }

    /**
     * Returns the stream of a stage's parameters.
     *
     * @param lowest the lowest block that has a backward
     * @param pool provides the room of gathered parameters; null where all have their own
     */
    public static ParameterStream of(
            StageParameters parameters,
            Sharding sharding,
            int lowest,
            int ahead,
            @Nullable GatherPool pool,
            Kernels kernels) {
        if (!sharding.gathers()) {
            return resident();
        }
        var stream = new ParameterStream(new ParameterUnits(parameters, lowest), sharding, ahead);
        for (ParameterGroup group : parameters.groups()) {
            SwappedGroup files = group.files();
            if (files != null) {
                stream.gathers.put(
                        group, new GroupLoad(group, files, kernels, requireNonNull(pool)));
            } else if (group.sharding().moments()) {
                stream.gathers.put(group, new GroupGather(group, kernels, pool));
            }
        }
        return stream;
    }

    /** An epoch begins. */
    public void connect(CollectiveGroup replicas) {
        stays.clear();
        gatherer.connect(replicas);
    }

    /** A pass begins, in which nothing is gathered yet. */
    public void beginPass() {
        stays.clear();
        gatherer.dropAll();
    }

    /**
     * Starts to gather layers that stay until their {@link #release} or the end of the pass. What
     * is swapped is not loaded for backwards that do not need it; replicas gather in one order.
     */
    public Collective gather(LayerRange layers, boolean rising) {
        if (units != null) {
            List<ParameterGatherer.Group> groups =
                    divided(loads && !rising ? units.ofBackward(layers) : units.of(layers, rising));
            groups.forEach(gatherer::hold);
            stays.put(layers, groups);
        }
        return gatherer;
    }

    /** Returns the time spent on gathers so far. */
    public long gatherNanos() {
        return gatherer.nanos();
    }

    public void release(LayerRange layers) {
        if (units != null) {
            requireNonNull(stays.remove(layers), "not gathered").forEach(gatherer::drop);
        }
    }

    /** The layers will be entered in ascending order, then the final norm. */
    public void forward() {
        begin(forward);
    }

    /** The head will be entered, then in descending order the layers that have a backward. */
    public void backward() {
        begin(backward);
    }

    /** The same layers will be entered, for the products for their weights alone. */
    public void backwardWeight() {
        begin(backwardWeight);
    }

    /** The head alone will be entered. */
    public void evaluation() {
        begin(evaluation);
    }

    private void begin(List<Integer> next) {
        order = next;
        at = 0;
        held = 0;
    }

    /** Enters the next unit in order; it can compute as soon as this returns. */
    public void enter() {
        if (units == null) {
            return;
        }
        gatherer.advance();
        while (streams && held < order.size() && held <= at + ahead) {
            divided(units.groups(order.get(held))).forEach(gatherer::hold);
            held++;
        }
        divided(units.groups(order.get(at))).forEach(gatherer::await);
    }

    /** Leaves the current unit, which has finished. */
    public void leave() {
        if (streams && units != null) {
            divided(units.groups(order.get(at))).forEach(gatherer::drop);
        }
        at++;
    }

    /** Returns the gathers of those groups of which replicas hold parts. */
    private List<ParameterGatherer.Group> divided(List<ParameterGroup> groups) {
        return groups.stream().map(gathers::get).filter(Objects::nonNull).toList();
    }
}
