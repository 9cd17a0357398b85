package dev.penstock.runtime.model.stage;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.runtime.model.activations.UnitRooms;
import dev.penstock.runtime.model.memory.OpScratch;
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
import java.util.Set;
import java.util.TreeMap;

/**
 * Everything that the stages of a rank allocate.
 *
 * @param stages the memory that each has for itself
 * @param pools memory that they use in turns
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
        UnitRooms rooms = share(scopes, settings, roles, sharding, budgets, programs);
        List<StageBuffers> stages = new ArrayList<>();
        Map<Integer, StageParameters> parameters = new TreeMap<>();
        Map<Integer, Integer> lowest = new TreeMap<>();
        Map<Integer, Integer> microBatches = new TreeMap<>();
        for (int i = 0; i < roles.size(); i++) {
            StageBuffers buffers =
                    StageBuffers.allocate(
                            scopes.get(i), settings, roles.get(i), sharding, budgets.get(i), rooms);
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

    /** Lets several stages of a rank share what they do not need at the same time. */
    private static UnitRooms share(
            List<StageScopes> scopes,
            GptSettings settings,
            List<StageRole> roles,
            Sharding sharding,
            List<StageBudget> budgets,
            List<RankProgram> programs) {
        if (roles.size() == 1) {
            return UnitRooms.apart();
        }
        long scratchBytes = 0;
        Map<Integer, Set<UnitRooms.Kind>> kinds = new TreeMap<>();
        for (int i = 0; i < roles.size(); i++) {
            StageScopes counting = StageScopes.counting(settings, "needs");
            OpScratch scratch = OpScratch.counting();
            UnitRooms rooms = UnitRooms.apart();
            counting.shareScratch(scratch);
            StageBuffers _ =
                    StageBuffers.allocate(
                            counting, settings, roles.get(i), sharding, budgets.get(i), rooms);
            scratchBytes = Math.max(scratchBytes, scratch.usedBytes());
            kinds.put(roles.get(i).stage(), rooms.wanted());
        }
        DeviceBuffer scratch = scopes.getFirst().scratch().allocate("scratch of ops", scratchBytes);
        scopes.forEach(each -> each.shareScratch(new OpScratch(scratch)));
        var needs = new RoomNeeds(kinds);
        programs.forEach(needs::run);
        return UnitRooms.shared(needs.most());
    }
}
