package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CriticalPath.Activity;
import dev.penstock.schedules.simulate.CriticalPath.Cause;
import dev.penstock.schedules.simulate.CriticalPath.Step;

import org.jspecify.annotations.Nullable;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.List;
import java.util.Objects;

/**
 * Walks from the end of a simulation to its start, from each moment to what it waited for. Linear
 * in ops.
 */
final class CriticalWalk {
    private final Schedule schedule;
    private final Placement placement;
    private final CostModel costs;
    private final InFlight inFlight;
    private final CausalLog log;
    private final Handover handover;
    private final Timeline timeline;
    private final ArrayDeque<Step> steps = new ArrayDeque<>();

    /** Explains the moment at which the earliest step begins; null if that is the beginning. */
    private @Nullable Runnable next;

    CriticalWalk(Schedule schedule, CostModel costs, InFlight inFlight) {
        this.schedule = schedule;
        this.placement = schedule.placement();
        this.costs = costs;
        this.inFlight = inFlight;
        this.log = new CausalLog(schedule, costs, inFlight);
        this.handover = log.handover();
        this.timeline = log.timeline();
    }

    /** The chain that ends with the last op of all. */
    CriticalPath criticalPath() {
        int lastRank = -1;
        int lastPosition = -1;
        long last = Long.MIN_VALUE;
        for (int rank = 0; rank < schedule.shape().ranks(); rank++) {
            for (int i = 0; i < timeline.opsRun(rank); i++) {
                if (timeline.endNanos(rank, i) > last) {
                    last = timeline.endNanos(rank, i);
                    lastRank = rank;
                    lastPosition = i;
                }
            }
        }
        if (lastRank >= 0) {
            explainEnd(lastRank, lastPosition);
        }
        while (next != null) {
            Runnable now = next;
            next = null;
            now.run();
        }
        return new CriticalPath(timeline.makespanNanos(), List.copyOf(steps));
    }

    private void explainEnd(int rank, int position) {
        if (timeline.endNanos(rank, position) > log.freeAfter(rank, position)) {
            background(rank, position);
        } else {
            runs(rank, position);
        }
    }

    private void step(int rank, int position, Activity activity, long from, long to, Cause cause) {
        boolean isWay = activity == Activity.ON_LINK || activity == Activity.UNDER_WAY;
        if (isWay && from == to) {
            return;
        }
        var place = new OpPlace(rank, position, schedule.program(rank).ops().get(position));
        steps.addFirst(new Step(place, activity, from, to, cause));
    }

    /** An op beside the computations: it began when it was reached, or after another. */
    private void background(int rank, int position) {
        long from = timeline.startNanos(rank, position);
        long to = timeline.endNanos(rank, position);
        if (from == reached(rank, position)) {
            start(rank, position, Activity.BACKGROUND, from, to);
            return;
        }
        int earlier = position - 1;
        Op op = schedule.program(rank).ops().get(position);
        while (!sameBackground(op, rank, earlier) || timeline.endNanos(rank, earlier) != from) {
            earlier--;
        }
        step(rank, position, Activity.BACKGROUND, from, to, Cause.BACKGROUND);
        int at = earlier;
        next = () -> explainEnd(rank, at);
    }

    /** Whether an op runs beside the computations where another does. */
    private boolean sameBackground(Op of, int rank, int position) {
        Op op = schedule.program(rank).ops().get(position);
        return of instanceof Op.ActivationOp
                ? op instanceof Op.ActivationOp
                : op instanceof Op.GatherParameters || op instanceof Op.ReduceGradients;
    }

    private void runs(int rank, int position) {
        start(
                rank,
                position,
                Activity.RUNS,
                reached(rank, position),
                log.freeAfter(rank, position));
    }

    /** When an op began to keep its rank. */
    private long reached(int rank, int position) {
        Op op = schedule.program(rank).ops().get(position);
        return log.freeAfter(rank, position) - costs.nanos(rank, position, op);
    }

    /** Adds a step that begins when its op is no longer kept from starting. */
    private void start(int rank, int position, Activity activity, long from, long to) {
        Op op = schedule.program(rank).ops().get(position);
        if (position > 0 && log.freeAfter(rank, position - 1) == from) {
            step(rank, position, activity, from, to, Cause.RANK);
            next = () -> runs(rank, position - 1);
        } else if (position == 0 && from == 0) {
            step(rank, position, activity, from, to, Cause.BEGINNING);
        } else if (op instanceof Op.ReduceGradients(int stage)) {
            step(rank, position, activity, from, to, Cause.MEMBERS);
            next = () -> lastMember(stage, from);
        } else if (op.isSend()) {
            step(rank, position, activity, from, to, Cause.CREDIT);
            next = () -> credit(position, handover.channel(op));
        } else {
            List<? extends Op> parts =
                    op instanceof Op.Overlapped ? op.computations() : List.of(op);
            awaited(rank, position, parts, activity, from, to);
        }
    }

    /** A tensor or parameters that came at the start of an op. */
    private void awaited(
            int rank,
            int position,
            List<? extends Op> parts,
            Activity activity,
            long from,
            long to) {
        for (Op part : parts) {
            int tensor = handover.needs(part);
            if (tensor != Handover.NONE && arrival(tensor) == from) {
                step(rank, position, activity, from, to, Cause.TENSOR);
                next = () -> underWay(tensor);
                return;
            }
        }
        for (int i = position - 1; i >= 0; i--) {
            Op op = schedule.program(rank).ops().get(i);
            boolean isOfPart = parts.stream().anyMatch(part -> part.stage() == op.stage());
            if (op instanceof Op.GatherParameters
                    && isOfPart
                    && timeline.endNanos(rank, i) == from) {
                int gather = i;
                step(rank, position, activity, from, to, Cause.PARAMETERS);
                next = () -> explainEnd(rank, gather);
                return;
            }
        }
        for (int i = position - 1; i >= 0; i--) {
            Op op = schedule.program(rank).ops().get(i);
            if (op instanceof Op.ActivationOp
                    && parts.stream().anyMatch(part -> part.stage() == op.stage())
                    && timeline.endNanos(rank, i) == from) {
                int move = i;
                step(rank, position, activity, from, to, Cause.ACTIVATIONS);
                next = () -> explainEnd(rank, move);
                return;
            }
        }
        throw new IllegalArgumentException(
                "nothing explains why op %d of rank %d starts at %d; validate %s"
                        .formatted(position, rank, from, schedule.name()));
    }

    private Channel channelOf(int tensor) {
        return handover.channelAt(handover.channelOfTensor(tensor)).orElseThrow();
    }

    private long arrival(int tensor) {
        LinkLog.@Nullable Entry entry = log.link(channelOf(tensor)).of(tensor);
        return entry == null ? -1 : entry.to() + costs.latencyNanos(channelOf(tensor));
    }

    private void underWay(int tensor) {
        LinkLog link = log.link(channelOf(tensor));
        LinkLog.Entry entry = Objects.requireNonNull(link.of(tensor));
        int sender = placement.senderOf(channelOf(tensor));
        step(sender, entry.position(), Activity.UNDER_WAY, entry.to(), arrival(tensor), Cause.LINK);
        next = () -> onLink(link, sender, entry);
    }

    private void onLink(LinkLog link, int sender, LinkLog.Entry entry) {
        boolean waited = entry.from() > entry.given();
        step(
                sender,
                entry.position(),
                Activity.ON_LINK,
                entry.from(),
                entry.to(),
                waited ? Cause.LINK : Cause.RANK);
        next =
                waited
                        ? () -> onLink(link, sender, link.before(entry))
                        : () -> runs(sender, entry.position());
    }

    /** The receive that made room for the send at a position. */
    private void credit(int position, int number) {
        Channel channel = handover.channelAt(number).orElseThrow();
        int sent = Collections.binarySearch(log.sends(number), position);
        int receive = log.receives(number).get(sent - inFlight.capacity(channel));
        runs(placement.receiverOf(channel), receive);
    }

    /** The rank that came last to the first reduction for which a group meets. */
    private void lastMember(int stage, long when) {
        List<Integer> group =
                schedule.reductionGroups().stream()
                        .filter(stages -> stages.contains(stage))
                        .findFirst()
                        .orElseThrow();
        List<Integer> ranks =
                group.stream().flatMap(member -> placement.ranksOf(member).stream()).toList();
        for (int rank : ranks) {
            int first = meeting(rank, group);
            if (first > 0 && log.freeAfter(rank, first - 1) == when) {
                runs(rank, first - 1);
                return;
            }
        }
    }

    /** Of the last reductions of a rank's members, the first. */
    private int meeting(int rank, List<Integer> group) {
        return group.stream()
                .filter(stage -> placement.holds(rank, stage))
                .mapToInt(schedule.program(rank)::lastReductionOf)
                .min()
                .orElseThrow();
    }
}
