package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.BlockedOp;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Runs the schedule and looks for the cycles among the ranks that are stuck. A rank runs one op at
 * a time, so each waits for one other, and every cycle is found. A rank that waits for an op that
 * stands nowhere is in no cycle: there the missing op is the fault.
 */
final class Deadlocks {
    private final PipelineShape shape;
    private final List<BlockedOp> stuck;

    Deadlocks(Schedule schedule, InFlight inFlight) {
        this.shape = schedule.shape();
        this.stuck = ScheduleSimulator.stuck(schedule, inFlight);
    }

    /**
     * @param nothingElseWrong if so, a stuck rank in no cycle is reported too
     */
    List<Violation> violations(boolean nothingElseWrong) {
        Map<Integer, BlockedOp> byRank = new HashMap<>();
        stuck.forEach(wait -> byRank.put(wait.place().rank(), wait));
        var violations = new ArrayList<Violation>();
        Set<Integer> seen = new HashSet<>();
        for (BlockedOp start : stuck) {
            var path = new ArrayList<BlockedOp>();
            @Nullable BlockedOp at = start;
            while (at != null && seen.add(at.place().rank())) {
                path.add(at);
                at = at.awaitedPlace().map(place -> byRank.get(place.rank())).orElse(null);
            }
            int entry = at == null ? -1 : path.indexOf(at);
            if (entry >= 0) {
                violations.add(deadlock(path.subList(entry, path.size())));
            }
        }
        if (violations.isEmpty() && nothingElseWrong && !stuck.isEmpty()) {
            violations.add(deadlock(stuck.subList(0, 1)));
        }
        return violations;
    }

    /** "rank 1 at 1F2 waits for 0F2 of rank 0, which at 0B0 waits for ...". */
    private Violation deadlock(List<BlockedOp> cycle) {
        BlockedOp first = cycle.getFirst();
        String text =
                cycle.stream()
                        .map(wait -> "at %s waits for %s".formatted(print(wait), awaited(wait)))
                        .collect(Collectors.joining(", which "));
        return new Violation.Deadlock(
                first.place(), cycle, "deadlock: rank %d ".formatted(first.place().rank()) + text);
    }

    private String print(BlockedOp wait) {
        return OpText.print(wait.place().op(), shape);
    }

    private String awaited(BlockedOp wait) {
        String op = OpText.print(wait.awaited(), shape);
        String named =
                switch (wait.reason()) {
                    case TENSOR -> op;
                    case CREDIT -> "room that %s makes".formatted(op);
                    case MEMBERS -> "its member at %s".formatted(op);
                };
        return wait.awaitedPlace()
                .map(place -> "%s of rank %d".formatted(named, place.rank()))
                .orElse(named + ", which comes nowhere");
    }
}
