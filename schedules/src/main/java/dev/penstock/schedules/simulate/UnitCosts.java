package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * One cost for each kind of op, the same for every stage, micro-batch and slice. As text: {@code
 * forward=1,backward-input=1,backward-weight=1,transfer=0}.
 *
 * <p>Costs are whole numbers from 0 to {@value #MOST}; nanoseconds, or any unit that all of them
 * share.
 */
public final class UnitCosts implements CostModel {
    /** The largest cost, so that a sum over all ops of a schedule is a {@code long}. */
    public static final long MOST = 10_000_000_000L;

    /** What costs something, by its name in the text. */
    public enum Kind {
        /** {@link Op.Forward}; 1 if not given. */
        FORWARD,
        /** {@link Op.BackwardInput}; if not given 1, or half of a backward that alone is given. */
        BACKWARD_INPUT,
        /** {@link Op.BackwardWeight}; if not given 1, or the other half. */
        BACKWARD_WEIGHT,
        /** {@link Op.Backward}; both its parts if not given. */
        BACKWARD,
        /** {@link Op.Recompute}; a forward if not given. */
        RECOMPUTE,
        /**
         * {@link Op.Overlapped} with a full backward; if not given the computations of both, or
         * longer if the sums of one last longer than that. Other pairs take the same share of their
         * sum if it is given.
         */
        OVERLAPPED,
        /**
         * The sums over the tensor shards of a stage in a forward, and again in a backward; 0 if
         * not given. They come on top of a {@link Op.Forward}, {@link Op.BackwardInput} and {@link
         * Op.Recompute}, but go on beside the weights' part of a {@link Op.Backward} and beside the
         * other computation of a pair.
         */
        SUM,
        /** How long a tensor is under way between two ranks; 0 if not given. */
        TRANSFER,
        /** How long a tensor keeps the link between two ranks busy; 0 if not given. */
        LINK,
        /** {@link Op.GatherParameters}, beside the computations; 0 if not given. */
        GATHER,
        /**
         * {@link Op.Offload} and {@link Op.Reload}, each, beside the computations; 0 if not given.
         */
        OFFLOAD,
        /** {@link Op.ReduceGradients}, beside the computations; 0 if not given. */
        REDUCE;

        /** Its name in the text. */
        public String text() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    private final Map<Kind, Long> given;
    private final long[] costs = new long[Kind.values().length];

    private UnitCosts(Map<Kind, Long> given) {
        this.given = Map.copyOf(given);
        set(Kind.FORWARD, 1);
        boolean whole =
                given.containsKey(Kind.BACKWARD)
                        && !given.containsKey(Kind.BACKWARD_INPUT)
                        && !given.containsKey(Kind.BACKWARD_WEIGHT);
        long backward = given.getOrDefault(Kind.BACKWARD, 2L);
        set(Kind.BACKWARD_INPUT, whole ? backward / 2 : 1);
        set(Kind.BACKWARD_WEIGHT, whole ? backward - backward / 2 : 1);
        set(Kind.BACKWARD, of(Kind.BACKWARD_INPUT) + of(Kind.BACKWARD_WEIGHT));
        set(Kind.RECOMPUTE, of(Kind.FORWARD));
        set(Kind.SUM, 0);
        set(Kind.OVERLAPPED, beside(Kind.FORWARD, Kind.BACKWARD));
        set(Kind.TRANSFER, 0);
        set(Kind.LINK, 0);
        set(Kind.GATHER, 0);
        set(Kind.OFFLOAD, 0);
        set(Kind.REDUCE, 0);
    }

    private void set(Kind kind, long otherwise) {
        costs[kind.ordinal()] = given.getOrDefault(kind, otherwise);
    }

    /** What is not in the map has the default of its {@link Kind}. */
    public static UnitCosts of(Map<Kind, Long> costs) {
        costs.forEach(
                (kind, cost) -> {
                    if (cost < 0 || cost > MOST) {
                        throw new IllegalArgumentException(
                                "expected a cost from 0 to %d for %s, got %d"
                                        .formatted(MOST, kind.text(), cost));
                    }
                });
        return new UnitCosts(costs);
    }

    /** A forward costs 1, either part of a backward 1, everything else nothing. */
    public static UnitCosts defaults() {
        return of(Map.of());
    }

    /**
     * Reads costs such as {@code forward=1,backward=2}; an empty text gives the defaults.
     *
     * @throws InvalidCostsException with everything that is wrong with the text
     */
    public static UnitCosts parse(String text) {
        var costs = new EnumMap<Kind, Long>(Kind.class);
        var problems = new ArrayList<String>();
        for (String pair : text.isBlank() ? List.<String>of() : List.of(text.split(",", -1))) {
            String[] parts = pair.split("=", 2);
            List<Kind> known =
                    Arrays.stream(Kind.values())
                            .filter(k -> k.text().equals(parts[0].strip()))
                            .toList();
            if (parts.length < 2) {
                problems.add("expected costs as 'forward=1,backward=2', got '%s'".formatted(pair));
            } else if (known.isEmpty()) {
                problems.add(
                        "unknown cost '%s', expected one of %s"
                                .formatted(parts[0].strip(), kinds()));
            } else if (!isCost(parts[1].strip())) {
                problems.add(
                        "expected a whole number from 0 to %d for %s, got '%s'"
                                .formatted(MOST, parts[0].strip(), parts[1].strip()));
            } else if (costs.put(known.getFirst(), Long.valueOf(parts[1].strip())) != null) {
                problems.add("the cost of %s is given twice".formatted(parts[0].strip()));
            }
        }
        if (!problems.isEmpty()) {
            throw new InvalidCostsException(problems);
        }
        return of(costs);
    }

    private static boolean isCost(String text) {
        return text.matches("\\d{1,11}") && Long.parseLong(text) <= MOST;
    }

    private static String kinds() {
        return Arrays.stream(Kind.values()).map(Kind::text).collect(Collectors.joining(", "));
    }

    /** The cost of a kind. */
    public long of(Kind kind) {
        return costs[kind.ordinal()];
    }

    /** All costs as text; {@link #parse} reads it back. */
    public String text() {
        return Arrays.stream(Kind.values())
                .map(kind -> kind.text() + "=" + of(kind))
                .collect(Collectors.joining(","));
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        return switch (op) {
            case Op.Compute compute -> alone(kind(compute));
            case Op.Overlapped(_, Op.Compute partner) -> overlapped(kind(partner));
            case Op.Transfer _, Op.ActivationOp _, Op.ParameterOp _, Op.ReduceGradients _ -> 0;
        };
    }

    private static Kind kind(Op.Compute op) {
        return switch (op) {
            case Op.Forward _ -> Kind.FORWARD;
            case Op.Backward _ -> Kind.BACKWARD;
            case Op.BackwardInput _ -> Kind.BACKWARD_INPUT;
            case Op.BackwardWeight _ -> Kind.BACKWARD_WEIGHT;
            case Op.Recompute _ -> Kind.RECOMPUTE;
        };
    }

    /** A computation with its sums. */
    private long alone(Kind kind) {
        return switch (kind) {
            case FORWARD, BACKWARD_INPUT, RECOMPUTE -> of(kind) + of(Kind.SUM);
            case BACKWARD -> Math.max(of(kind), of(Kind.BACKWARD_INPUT) + of(Kind.SUM));
            default -> of(kind);
        };
    }

    /** A pair whose computations take turns on the device while the other one's sums go on. */
    private long beside(Kind one, Kind other) {
        return Math.max(of(one) + of(other), Math.max(alone(one), alone(other)));
    }

    private long overlapped(Kind partner) {
        if (partner == Kind.BACKWARD) {
            return of(Kind.OVERLAPPED);
        }
        if (!given.containsKey(Kind.OVERLAPPED)) {
            return beside(Kind.FORWARD, partner);
        }
        long whole = of(Kind.FORWARD) + of(Kind.BACKWARD);
        long sum = of(Kind.FORWARD) + of(partner);
        return whole == 0 ? sum : Math.round((double) sum * of(Kind.OVERLAPPED) / whole);
    }

    @Override
    public long latencyNanos(Channel channel) {
        return of(Kind.TRANSFER);
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        return of(Kind.LINK);
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        return switch (op) {
            case Op.ReduceGradients _ -> of(Kind.REDUCE);
            case Op.GatherParameters _ -> of(Kind.GATHER);
            case Op.ActivationOp _ -> of(Kind.OFFLOAD);
            case Op.Compute _, Op.Overlapped _, Op.Transfer _, Op.ReleaseParameters _ -> 0;
        };
    }

    @Override
    public String toString() {
        return text();
    }
}
