package dev.penstock.runtime.model.stage;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.model.activations.HostLink;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.RankProgram;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Everything that the stages of a rank allocate.
 *
 * @param stages the memory that each has for itself
 * @param pools the memory that they share
 */
record RankBuffers(List<StageBuffers> stages, RankPools pools) {

    /**
     * @param scopes entry i is that of role i; the pools lie in the first
     * @param budgets entry i is what role i must be able to hold
     * @param programs of the rank, for every kind of pass; empty for any order
     */
    static RankBuffers allocate(
            List<StageScopes> scopes,
            GptSettings settings,
            List<StageRole> roles,
            RankPlace place,
            List<StageBudget> budgets,
            List<RankProgram> programs) {
        Sharding sharding = Sharding.of(settings, place);
        var link = new HostLink();
        List<StageBuffers> stages = new ArrayList<>();
        Map<Integer, StageParameters> parameters = new TreeMap<>();
        Map<Integer, Integer> lowest = new TreeMap<>();
        Map<Integer, Integer> microBatches = new TreeMap<>();
        for (int i = 0; i < roles.size(); i++) {
            StageBuffers buffers =
                    StageBuffers.allocate(
                            scopes.get(i), settings, roles.get(i), sharding, budgets.get(i), link);
            stages.add(buffers);
            parameters.put(roles.get(i).stage(), buffers.parameters());
            int begun = budgets.get(i).backwardMicroBatches() + budgets.get(i).awaitingWeight();
            microBatches.put(
                    roles.get(i).stage(), Math.min(begun, settings.batch().microBatches()));
            lowest.put(roles.get(i).stage(), settings.trained().lowestBackward(roles.get(i)));
        }
        return new RankBuffers(
                stages,
                RankPools.allocate(
                        scopes.getFirst(),
                        settings.zero(),
                        sharding,
                        programs,
                        parameters,
                        lowest,
                        microBatches));
    }
}
