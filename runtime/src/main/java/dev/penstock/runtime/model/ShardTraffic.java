package dev.penstock.runtime.model;

import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.simulate.ReplicaTraffic;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/** What the ops of a rank send to its replicas, known from the model's sizes alone. */
public final class ShardTraffic implements ReplicaTraffic.SentBytes {
    private final GptSettings settings;
    private final RankPlace place;
    private final Sharding sharding;
    private final Map<Integer, StageParameters> stages = new HashMap<>();

    /**
     * @param place of the rank
     */
    public ShardTraffic(GptSettings settings, RankPlace place) {
        this.settings = settings;
        this.place = place;
        this.sharding = Sharding.of(settings, place);
    }

    @Override
    public long gather(int stage, LayerRange layers) {
        return sharding.moments()
                ? gathered(new ParameterUnits(parameters(stage)).of(layers, true))
                : 0;
    }

    @Override
    public long reduction(int stage) {
        StageParameters parameters = parameters(stage);
        long bytes = parameters.groups().stream().mapToLong(this::reduced).sum();
        StageParameters.Head head = parameters.head();
        return head == null || head.second() == null
                ? bytes
                : bytes + reduced(head.matrix().group());
    }

    @Override
    public long computation(Op.Compute op) {
        if (!sharding.parameters() || settings.zero().residency() != ZeroSettings.Residency.LAYER) {
            return 0;
        }
        var units = new ParameterUnits(parameters(op.stage()));
        int ahead = settings.zero().prefetchLayers();
        return switch (op) {
            case Op.Forward _, Op.Recompute _ -> gathered(units.gathersOf(units.forward(), ahead));
            case Op.InputGradient _ -> gathered(units.gathersOf(units.backward(), ahead));
            case Op.BackwardWeight _ -> 0;
        };
    }

    private long gathered(Collection<ParameterGroup> groups) {
        return groups.stream().mapToLong(this::gathered).sum();
    }

    private long gathered(ParameterGroup group) {
        ShardMap map = sharding.map(group.elements());
        int elementBytes = group.readsWeights() ? Float.BYTES : Short.BYTES;
        return map.count(sharding.index()) * (sharding.replicas() - 1) * elementBytes;
    }

    private long reduced(ParameterGroup group) {
        ShardMap map = sharding.map(group.elements());
        long own = map.count(sharding.index());
        long scattered = group.elements() - own;
        long back = sharding.moments() ? 0 : own * (sharding.replicas() - 1);
        return (scattered + back) * Float.BYTES;
    }

    private StageParameters parameters(int stage) {
        return stages.computeIfAbsent(
                stage,
                _ -> {
                    StageRole role = settings.role(stage, place);
                    var scopes = new StageScopes(new CountingScope("prediction"), "traffic");
                    return StageParameters.allocate(
                            new ParameterAllocator(
                                    scopes,
                                    settings.precision(),
                                    ParameterAllocator.Use.TRAIN,
                                    sharding),
                            settings.shape(role),
                            role);
                });
    }
}
