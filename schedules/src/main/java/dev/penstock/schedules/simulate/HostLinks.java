package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The ways between the ranks' devices and their hosts, and the room of the stages whose activations
 * take them. A stage has as much room as the order proves that it needs; room that activations
 * leave is taken last, and who takes it waits until they have left.
 */
final class HostLinks {
    private final PipelineShape shape;

    /** By rank: when the last move ends. */
    private final long[] free;

    /** By unit: when its activations are back. */
    private final Map<Integer, Long> back = new HashMap<>();

    /** By rank: with what units end. */
    private final List<LiveUnits.Ends> ends;

    private final Set<WorkUnit> recomputed = new HashSet<>();

    /** By rank and stage. */
    private final Map<Long, Room> rooms = new HashMap<>();

    private HostLinks(Schedule schedule) {
        this.shape = schedule.shape();
        this.free = new long[shape.ranks()];
        this.ends = schedule.programs().stream().map(LiveUnits.Ends::of).toList();
        for (RankProgram program : schedule.programs()) {
            for (Op op : program.ops()) {
                if (op instanceof Op.Recompute(WorkUnit unit)) {
                    recomputed.add(unit);
                }
            }
        }
        for (StagePeak peak : MemoryProfile.of(schedule, PassKind.TRAINING).stages()) {
            if (peak.peakAway() > 0) {
                rooms.put(key(peak.rank(), peak.stage()), new Room(peak.peakUnits()));
            }
        }
    }

    /** Null where nothing is ever moved. */
    static @Nullable HostLinks of(Schedule schedule) {
        boolean moves =
                schedule.programs().stream()
                        .anyMatch(
                                p -> p.ops().stream().anyMatch(Op.ActivationOp.class::isInstance));
        return moves ? new HostLinks(schedule) : null;
    }

    /** When an op that a rank reached can begin: it takes the room that it needs. */
    long begin(int rank, Op op, long reached) {
        long at = reached;
        for (Op.Compute part : op.computations()) {
            @Nullable Room room = rooms.get(key(rank, part.stage()));
            if ((part instanceof Op.Forward || part instanceof Op.Recompute) && room != null) {
                at = Math.max(at, room.take());
            }
            if (part instanceof Op.InputGradient) {
                at = Math.max(at, back.getOrDefault(shape.indexOf(part.unit()), 0L));
            }
        }
        if (op instanceof Op.Reload) {
            @Nullable Room room = rooms.get(key(rank, op.stage()));
            if (room != null) {
                room.take(); // what comes runs after what leaves
            }
        }
        return at;
    }

    /** When a move that a rank reached begins. */
    long copies(int rank, long reached) {
        return Math.max(reached, free[rank]);
    }

    /** A move was begun. */
    void moved(int rank, Op.ActivationOp op, long end) {
        free[rank] = end;
        @Nullable Room room = rooms.get(key(rank, op.stage()));
        switch (op) {
            case Op.Offload _ -> {
                if (room != null) {
                    room.leaving.add(end);
                }
            }
            case Op.Reload(var unit) -> back.put(shape.indexOf(unit), end);
        }
    }

    /** The last op of a unit gives its room back, and so does a forward that runs again. */
    void end(int rank, Op op) {
        for (Op.Compute part : op.computations()) {
            @Nullable Room room = rooms.get(key(rank, part.stage()));
            boolean last =
                    switch (part) {
                        case Op.Backward _, Op.BackwardWeight _ -> true;
                        case Op.BackwardInput _ -> !ends.get(rank).withWeight().get(part.stage());
                        case Op.Forward(WorkUnit unit) -> recomputed.contains(unit);
                        case Op.Recompute _ -> false;
                    };
            if (room != null && last) {
                room.idle++;
            }
        }
    }

    private long key(int rank, int stage) {
        return (long) rank * shape.stages() + stage;
    }

    /** The slots of one stage. */
    private static final class Room {
        private int idle;

        /** When the slots that activations leave are empty, in that order. */
        private final Deque<Long> leaving = new ArrayDeque<>();

        Room(int slots) {
            this.idle = slots;
        }

        /** When a slot is empty, which is taken. */
        long take() {
            if (idle > 0) {
                idle--;
                return 0;
            }
            @Nullable Long left = leaving.poll();
            return left == null ? 0 : left;
        }
    }
}
