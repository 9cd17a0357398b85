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
 * @param beside what each has for the second op of a pair; empty where no pair runs both its ops at
 *     a time
 * @param pools memory that they use in turns
 */
record RankBuffers(List<StageBuffers> stages, List<StageBuffers> beside, RankPools pools) {

    /**
     * @param scopes entry i is that of role i; the pools lie in the first
     * @param budgets entry i is what role i must be able to hold
     * @param programs of the rank, for every kind of pass; empty for any order
     * @param beside whether the second ops of pairs have scratch of their own
     */
    static RankBuffers allocate(
            List<StageScopes> scopes,
            GptSettings settings,
            List<StageRole> roles,
            RankPlace place,
            List<StageBudget> budgets,
            List<RankProgram> programs,
            boolean beside) {
        Sharding sharding = Sharding.of(settings, place);
        var sizes = new Sizes(settings, roles, sharding, budgets, beside);
        UnitRooms rooms = share(scopes, sizes, programs);
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
                beside ? besides(scopes, settings, roles, stages, sizes) : List.of(),
                RankPools.allocate(
                        scopes.getFirst(),
                        settings.zero(),
                        sharding,
                        programs,
                        parameters,
                        lowest,
                        microBatches));
    }

    /** Second ops of pairs run one at a time as well. */
    private static List<StageBuffers> besides(
            List<StageScopes> scopes,
            GptSettings settings,
            List<StageRole> roles,
            List<StageBuffers> stages,
            Sizes sizes) {
        shareScratch(scopes, "scratch of second ops of pairs", sizes.besideBytes);
        List<StageBuffers> besides = new ArrayList<>();
        for (int i = 0; i < roles.size(); i++) {
            besides.add(stages.get(i).beside(scopes.get(i), settings, roles.get(i)));
        }
        return besides;
    }

    private static void shareScratch(List<StageScopes> scopes, String name, long bytes) {
        DeviceBuffer scratch = scopes.getFirst().tables().allocate(name, bytes);
        scopes.forEach(each -> each.shareScratch(new OpScratch(scratch)));
    }

    /** Lets several stages of a rank share what they do not need at the same time. */
    private static UnitRooms share(
            List<StageScopes> scopes, Sizes sizes, List<RankProgram> programs) {
        if (scopes.size() == 1) {
            return UnitRooms.apart();
        }
        shareScratch(scopes, "scratch of ops", sizes.scratchBytes);
        var needs = new RoomNeeds(sizes.kinds);
        programs.forEach(needs::run);
        return UnitRooms.shared(needs.most());
    }

    /** What stages need, of which the largest decides where they take turns. */
    private static final class Sizes {
        private final Map<Integer, Set<UnitRooms.Kind>> kinds = new TreeMap<>();
        private long scratchBytes;
        private long besideBytes;

        Sizes(
                GptSettings settings,
                List<StageRole> roles,
                Sharding sharding,
                List<StageBudget> budgets,
                boolean beside) {
            if (roles.size() == 1 && !beside) {
                return; // nobody to take turns with
            }
            for (int i = 0; i < roles.size(); i++) {
                StageScopes counting = StageScopes.counting(settings, "needs");
                OpScratch scratch = OpScratch.counting();
                UnitRooms rooms = UnitRooms.apart();
                counting.shareScratch(scratch);
                StageBuffers buffers =
                        StageBuffers.allocate(
                                counting, settings, roles.get(i), sharding, budgets.get(i), rooms);
                scratchBytes = Math.max(scratchBytes, scratch.usedBytes());
                kinds.put(roles.get(i).stage(), rooms.wanted());
                if (beside) {
                    OpScratch second = OpScratch.counting();
                    counting.shareScratch(second);
                    StageBuffers _ = buffers.beside(counting, settings, roles.get(i));
                    besideBytes = Math.max(besideBytes, second.usedBytes());
                }
            }
        }
    }
}
