package dev.penstock.runtime.model.stage;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.OuterState;
import dev.penstock.runtime.model.parameters.ParameterAllocator;
import dev.penstock.runtime.model.parameters.ParameterGroup;
import dev.penstock.runtime.model.parameters.ParameterUnits;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.OuterSettings;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.simulate.ReplicaTraffic;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The bytes that the ops of a rank send to its replicas, calculated from the model's sizes alone.
 */
public final class ShardTraffic implements ReplicaTraffic.SentBytes {
    private final GptSettings settings;
    private final RankPlace place;
    private final Sharding sharding;
    private final int members;
    private final int index;
    private final long ringFromBytes;
    private final Map<Integer, StageParameters> stages = new HashMap<>();

    /**
     * Of a rank all of whose replicas are there.
     *
     * @param place of the rank
     * @param ringFromBytes size from which replicas use a ring
     */
    public ShardTraffic(GptSettings settings, RankPlace place, long ringFromBytes) {
        this(
                settings,
                place,
                Sharding.of(settings, place).replicas(),
                Sharding.of(settings, place).index(),
                ringFromBytes);
    }

    /**
     * @param place of the rank
     * @param members how many ranks sum the gradients of its stages
     * @param index of the rank among them
     * @param ringFromBytes size from which they use a ring
     */
    public ShardTraffic(
            GptSettings settings, RankPlace place, int members, int index, long ringFromBytes) {
        this.settings = settings;
        this.place = place;
        this.sharding = Sharding.of(settings, place);
        this.members = members;
        this.index = index;
        this.ringFromBytes = ringFromBytes;
    }

    @Override
    public long gather(int stage, LayerRange layers) {
        return sharding.moments() ? gathered(units(stage).of(layers, true)) : 0;
    }

    @Override
    public long reduction(int stage) {
        if (settings.outer().map(outer -> outer.after() == 0).orElse(false)) {
            return 0; // each replica sums what it computes itself
        }
        StageParameters parameters = parameters(stage);
        long bytes =
                parameters.groups().stream()
                        .filter(ParameterGroup::isTrained)
                        .mapToLong(this::reduced)
                        .sum();
        StageParameters.Head head = parameters.head();
        return head == null || head.second() == null
                ? bytes
                : bytes + reduced(head.matrix().group());
    }

    /**
     * Returns the bytes of a stage's reduced gradients that this rank holds and sends to its
     * mirror.
     */
    public long heldGradients(int stage) {
        return parameters(stage).groups().stream()
                .filter(ParameterGroup::isTrained)
                .mapToLong(group -> sharding.held(group.elements()).count() * Float.BYTES)
                .sum();
    }

    /**
     * Returns the bytes that this rank sends to replicas that take steps alone when it is the turn
     * of the fragment that has most of them; 0 where there are none.
     */
    public long outerGradients(List<Integer> stages) {
        return settings.outer().map(outer -> outerGradients(outer, stages)).orElse(0L);
    }

    private long outerGradients(OuterSettings outer, List<Integer> stages) {
        long[] bytes = new long[outer.fragments()];
        for (int stage : stages) {
            var scopes = StageScopes.counting(settings, "outer gradients");
            int replicas = settings.grid().data();
            OuterState state =
                    OuterState.allocate(
                            scopes,
                            outer,
                            parameters(stage),
                            settings.role(stage, place),
                            replicas);
            for (int fragment = 0; fragment < bytes.length; fragment++) {
                OuterState.Exchange exchange = state.exchange(fragment);
                long all = exchange.map().elements() * Float.BYTES;
                bytes[fragment] +=
                        CollectiveForm.of(all, ringFromBytes)
                                .sentBytes(
                                        exchange.kind(), exchange.map(), place.data(), Float.BYTES);
            }
        }
        return Arrays.stream(bytes).max().orElse(0);
    }

    @Override
    public long computation(Op.Compute op) {
        if (!sharding.parameters() || settings.zero().residency() != ZeroSettings.Residency.LAYER) {
            return 0;
        }
        ParameterUnits units = units(op.stage());
        int ahead = settings.zero().prefetchLayers();
        return switch (op) {
            case Op.Forward _, Op.Recompute _ -> gathered(units.gathersOf(units.forward(), ahead));
            case Op.InputGradient _ -> gathered(units.gathersOf(units.backward(), ahead));
            case Op.BackwardWeight _ -> gathered(units.gathersOf(units.backwardWeight(), ahead));
        };
    }

    private ParameterUnits units(int stage) {
        return new ParameterUnits(
                parameters(stage), settings.trained().lowestBackward(settings.role(stage, place)));
    }

    private long gathered(Collection<ParameterGroup> groups) {
        return groups.stream().mapToLong(this::gathered).sum();
    }

    private long gathered(ParameterGroup group) {
        if (!group.sharding().moments()) {
            return 0; // not trained, and whole on every replica
        }
        int elementBytes = group.readsWeights() ? Float.BYTES : Short.BYTES;
        return sent(CollectiveKind.ALL_GATHER, group, elementBytes);
    }

    private long reduced(ParameterGroup group) {
        int elementBytes = sharding.exact() ? Long.BYTES : Float.BYTES;
        return sharding.moments()
                ? sent(CollectiveKind.REDUCE_SCATTER, group, elementBytes)
                : sent(CollectiveKind.ALL_REDUCE, group, elementBytes);
    }

    private long sent(CollectiveKind kind, ParameterGroup group, int elementBytes) {
        ShardMap map =
                kind == CollectiveKind.ALL_REDUCE
                        ? new ShardMap(group.elements(), members)
                        : group.sharding().map(group.elements());
        return CollectiveForm.of(group.elements() * elementBytes, ringFromBytes)
                .sentBytes(kind, map, index, elementBytes);
    }

    private StageParameters parameters(int stage) {
        return stages.computeIfAbsent(
                stage,
                _ -> {
                    StageRole role = settings.role(stage, place);
                    var scopes = StageScopes.counting(settings, "traffic");
                    return StageParameters.allocate(
                            new ParameterAllocator(
                                    scopes,
                                    settings.precision(),
                                    ParameterAllocator.Use.TRAIN,
                                    sharding,
                                    settings.fineTuning()),
                            settings.shape(role),
                            role);
                });
    }
}
