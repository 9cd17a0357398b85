package dev.penstock.runtime.model.stage;

import dev.penstock.runtime.model.activations.UnitRooms;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The most rooms of each kind that the units of a rank's stages have at a time, found by walking
 * its programs. A unit has its rooms as long as the judge counts it:
 *
 * <pre>
 *   F .. B, or W where backwards come in two parts, or F alone without any
 *   F, RECOMPUTE .. B          where the unit keeps its input alone in between
 *   F .. OFFLOAD, RELOAD .. B  where it leaves the device
 * </pre>
 */
final class RoomNeeds {
    private final Map<Integer, Set<UnitRooms.Kind>> kinds;
    private final Map<UnitRooms.Kind, Integer> most = new HashMap<>();

    /**
     * @param kinds by stage, those of which a unit has one room each
     */
    RoomNeeds(Map<Integer, Set<UnitRooms.Kind>> kinds) {
        this.kinds = kinds;
    }

    Map<UnitRooms.Kind, Integer> most() {
        return most;
    }

    void run(RankProgram program) {
        new Walk(program).run(program);
    }

    private final class Walk {
        private final Set<Integer> withBackward = new HashSet<>();
        private final Set<Integer> withWeight = new HashSet<>();
        private final Set<WorkUnit> recomputed = new HashSet<>();
        private final Map<UnitRooms.Kind, Integer> taken = new HashMap<>();

        Walk(RankProgram program) {
            for (Op op : program.ops()) {
                for (Op.Compute part : op.computations()) {
                    switch (part) {
                        case Op.Forward _ -> {}
                        case Op.Recompute(WorkUnit unit) -> recomputed.add(unit);
                        case Op.InputGradient _ -> withBackward.add(part.stage());
                        case Op.BackwardWeight _ -> withWeight.add(part.stage());
                    }
                }
            }
        }

        void run(RankProgram program) {
            for (Op op : program.ops()) {
                if (op instanceof Op.Offload(WorkUnit unit)) {
                    change(unit, -1);
                } else if (op instanceof Op.Reload(WorkUnit unit)) {
                    change(unit, 1);
                }
                op.computations().forEach(this::run);
            }
        }

        private void run(Op.Compute op) {
            switch (op) {
                case Op.Forward(WorkUnit unit) -> {
                    change(unit, 1);
                    if (!withBackward.contains(unit.stage()) || recomputed.contains(unit)) {
                        change(unit, -1);
                    }
                }
                case Op.Recompute(WorkUnit unit) -> change(unit, 1);
                case Op.InputGradient backward -> {
                    if (backward instanceof Op.Backward || !withWeight.contains(op.stage())) {
                        change(backward.unit(), -1);
                    }
                }
                case Op.BackwardWeight(WorkUnit unit) -> change(unit, -1);
            }
        }

        private void change(WorkUnit unit, int by) {
            for (UnitRooms.Kind kind : kinds.getOrDefault(unit.stage(), Set.of())) {
                most.merge(kind, taken.merge(kind, by, Integer::sum), Math::max);
            }
        }
    }
}
