package dev.penstock.runtime.model.parameters;

import dev.penstock.schedules.ir.LayerRange;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The groups of a stage by what needs them at a time: the embedding, each block, the final norm,
 * norm and matrix of the head, and once more each block, of which the backward for the weights
 * needs the branches alone. What a stage does not have needs nothing.
 */
public final class ParameterUnits {
    private final List<List<ParameterGroup>> units = new ArrayList<>();
    private final int blocks;
    private final int lowest;

    /**
     * @param lowest the lowest block that has a backward
     */
    public ParameterUnits(StageParameters parameters, int lowest) {
        blocks = parameters.layers().size();
        this.lowest = lowest;
        StageParameters.Embedding embedding = parameters.embedding();
        units.add(embedding == null ? List.of() : groups(embedding));
        parameters.layers().forEach(layer -> units.add(layer.groups()));
        StageParameters.Head head = parameters.head();
        units.add(head == null ? List.of() : withoutMatrix(head));
        units.add(
                head == null
                        ? List.of()
                        : Stream.concat(
                                        Stream.of(head.matrix().group()),
                                        withoutMatrix(head).stream())
                                .toList());
        parameters.layers().forEach(layer -> units.add(layer.groupsOfBranches()));
    }

    private static List<ParameterGroup> withoutMatrix(StageParameters.Head head) {
        TransformParameters transform = head.transform();
        ParameterGroup norm = head.norm().gain().group();
        return transform == null
                ? List.of(norm)
                : Stream.concat(Stream.of(norm), transform.groups().stream()).distinct().toList();
    }

    private static List<ParameterGroup> groups(StageParameters.Embedding embedding) {
        return Stream.of(embedding.tokens(), embedding.positions(), embedding.types())
                .filter(Objects::nonNull)
                .map(Parameter::group)
                .distinct()
                .toList();
    }

    /** Returns the groups of a unit. */
    List<ParameterGroup> groups(int unit) {
        return units.get(unit);
    }

    /** Returns the units in the order in which a forward needs them. */
    public List<Integer> forward() {
        return IntStream.rangeClosed(0, blocks + 1).boxed().toList();
    }

    /**
     * Returns the units in the order in which a backward needs them; the embedding's backward needs
     * none, and blocks below the lowest have none.
     */
    public List<Integer> backward() {
        return Stream.concat(evaluation().stream(), falling(1).stream()).toList();
    }

    /** Returns the units in the order in which a backward for the weights alone needs them. */
    public List<Integer> backwardWeight() {
        return falling(head() + 1);
    }

    /** Returns the units that an evaluation needs after its forward. */
    List<Integer> evaluation() {
        return List.of(head());
    }

    private int head() {
        return blocks + 2;
    }

    /** Returns the blocks that have a backward, falling, counted from this unit. */
    private List<Integer> falling(int first) {
        return IntStream.range(lowest, blocks).map(i -> first + i).boxed().toList().reversed();
    }

    /** Returns every group once. */
    public Set<ParameterGroup> all() {
        var all = new LinkedHashSet<ParameterGroup>();
        units.forEach(all::addAll);
        return all;
    }

    /**
     * Returns the groups of some layers, in order of use. The embedding belongs to the first layer,
     * the head to the last.
     */
    public List<ParameterGroup> of(LayerRange layers, boolean rising) {
        List<ParameterGroup> rise = rising(layers, true);
        return rising ? rise : rise.reversed();
    }

    /** Returns those that backwards of the layers need, in order of use. */
    List<ParameterGroup> ofBackward(LayerRange layers) {
        return rising(layers, false).reversed();
    }

    private List<ParameterGroup> rising(LayerRange layers, boolean embeds) {
        var groups = new LinkedHashSet<ParameterGroup>();
        if (embeds && layers.first() == 0) {
            groups.addAll(units.getFirst());
        }
        int end = Math.min(blocks - 1, layers.last());
        for (int layer = layers.first(); layer <= end; layer++) {
            groups.addAll(units.get(1 + layer));
        }
        if (layers.last() >= blocks - 1) {
            groups.addAll(units.get(head()));
        }
        return List.copyOf(groups);
    }

    /**
     * Returns the groups that are gathered, with repetitions, if every unit stays only while it
     * computes.
     */
    public List<ParameterGroup> gathersOf(List<Integer> order, int ahead) {
        List<ParameterGroup> gathered = new ArrayList<>();
        Map<ParameterGroup, Integer> holds = new HashMap<>();
        int held = 0;
        for (int at = 0; at < order.size(); at++) {
            for (; held < order.size() && held <= at + ahead; held++) {
                for (ParameterGroup group : units.get(order.get(held))) {
                    if (holds.merge(group, 1, Integer::sum) == 1) {
                        gathered.add(group);
                    }
                }
            }
            units.get(order.get(at)).forEach(group -> holds.merge(group, -1, Integer::sum));
        }
        return gathered;
    }

    /**
     * Returns the groups that are held at the same time if every unit stays while it computes and
     * the given number is gathered ahead.
     */
    public List<Set<ParameterGroup>> windows(int ahead) {
        List<Set<ParameterGroup>> windows = new ArrayList<>();
        for (List<Integer> order : List.of(forward(), backward(), backwardWeight(), evaluation())) {
            for (int at = 0; at < order.size(); at++) {
                var window = new LinkedHashSet<ParameterGroup>();
                order.subList(at, Math.min(order.size(), at + ahead + 1))
                        .forEach(unit -> window.addAll(units.get(unit)));
                windows.add(window);
            }
        }
        return windows;
    }
}
