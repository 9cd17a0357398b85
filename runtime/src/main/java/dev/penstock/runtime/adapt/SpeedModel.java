package dev.penstock.runtime.adapt;

import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.Wiring;
import dev.penstock.schedules.simulate.ComputeKind;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileLine;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.stream.IntStream;

/**
 * What steps of a plan would take with its layers in other stages, and in other orders. The work of
 * a stage is that of its layers by FLOPs; a rank's speed is the work of its stages over the time
 * that it took for them.
 *
 * @param order that the ranks run
 * @param partition of its stages
 * @param parts of the model, as far as they are trained
 * @param movesLayers whether the stages may be others
 * @param candidates what else may be run
 * @param links adds the time of tensors under way to the costs of an order's computations
 * @param lastStep of the run
 */
public record SpeedModel(
        Order order,
        StagePartition partition,
        TrainedParts parts,
        boolean movesLayers,
        Candidates candidates,
        BiFunction<CostModel, Schedule, CostModel> links,
        long lastStep) {
    private static final long NANOS_PER_MICRO = 1_000;
    private static final MathContext TWO_DIGITS = new MathContext(2);

    /** What costs are of, in their order. */
    private static final List<ComputeKind> KINDS =
            List.of(ComputeKind.FORWARD, ComputeKind.BACKWARD_INPUT, ComputeKind.BACKWARD_WEIGHT);

    /**
     * An order that the judge has proved.
     *
     * @param kind its family's name
     * @param costs that it was searched for, as in {@link Candidates}
     */
    public record Order(String kind, List<Integer> costs, Schedule schedule, InFlight inFlight) {
        public Order {
            costs = List.copyOf(costs);
        }

        /** Who does what, where replicas share micro-batches. */
        Optional<Wiring> wiring() {
            return schedule.placement().wiring();
        }

        /** How many micro-batches each rank of a wired order does. */
        private List<Integer> shares(Wiring wiring) {
            return IntStream.range(0, wiring.ranks())
                    .map(rank -> share(wiring, rank))
                    .boxed()
                    .toList();
        }

        private int share(Wiring wiring, int rank) {
            return schedule.placement().stagesOf(wiring.pipelineRankOf(rank)).stream()
                    .mapToInt(stage -> wiring.microBatchesOf(wiring.peerOfRank(rank), stage).size())
                    .sum();
        }
    }

    /** Orders that may take the place of the present one. */
    public interface Candidates {
        /** The names of their families. */
        List<String> kinds();

        /**
         * Returns an order with the stages, micro-batches and slices of the present one; empty if
         * there is none that the judge proves.
         *
         * @param costs of a forward, a backward for the input and one for the weights on each rank,
         *     one rank after the other; empty: all take as long
         */
        Optional<Order> order(String kind, List<Integer> costs);
    }

    /**
     * The plan that suits the measured speeds best.
     *
     * @param nanosNow simulated computations of a step as it is
     * @param nanosThen the same with these stages in this order
     * @param slowest speed of the slowest rank over that of the fastest
     */
    record Proposal(
            StagePartition former,
            StagePartition partition,
            Order formerOrder,
            Order order,
            long nanosNow,
            long nanosThen,
            double slowest) {
        /** What changes and why, in a line. */
        String words() {
            List<String> changes = new ArrayList<>();
            if (!partition.equals(former)) {
                changes.add(
                        "layers %s instead of %s"
                                .formatted(partition.layersPerStage(), former.layersPerStage()));
            }
            if (!order.kind().equals(formerOrder.kind())) {
                changes.add("%s instead of %s".formatted(order.kind(), formerOrder.kind()));
            } else if (!shares(order).equals(shares(formerOrder))) {
                changes.add(
                        "%s micro-batches of the ranks instead of %s"
                                .formatted(shares(order), shares(formerOrder)));
            } else if (!order.costs().equals(formerOrder.costs())) {
                changes.add(order.kind() + " made for what its ops take now");
            }
            return "%s would take %.3f s for the computations of a step instead of %.3f s; the slowest rank computes %.2f times as fast as the fastest"
                    .formatted(
                            String.join(" and ", changes),
                            nanosThen / 1e9,
                            nanosNow / 1e9,
                            slowest);
        }

        private static List<Integer> shares(Order of) {
            return of.wiring().map(of::shares).orElse(List.of());
        }

        /** Whether ranks may go on with the stages that they hold. */
        boolean keepsStages() {
            return partition.equals(former) && order.wiring().isPresent();
        }
    }

    /** As many layers on every stage as there are. */
    List<Integer> anyLayers() {
        return Collections.nCopies(partition.stages(), partition.layers());
    }

    /**
     * Looks for a better plan.
     *
     * @param measured what computations of the present stages took
     * @param most entry s is the most layers for which stage s has room
     */
    Proposal propose(Measured measured, List<Integer> most) {
        List<List<ProfileLine>> profiles = profiles(measured);
        double[] work = partition.flopsPerToken(parts);
        double[] speeds = speeds(measured.stages(), work);
        StagePartition best =
                movesLayers
                        ? StagePartition.bySpeed(parts, speeds, most).orElse(partition)
                        : partition;
        double[] workThen = best.flopsPerToken(parts);
        List<List<ProfileLine>> then =
                profiles.stream().map(lines -> moved(lines, work, workThen)).toList();
        long now = simulated(order, profiles).orElseThrow();
        Order chosen = order;
        long least = simulated(order, then).orElseThrow();
        for (String kind : candidates.kinds()) {
            for (List<Integer> costs : List.of(List.<Integer>of(), costs(then))) {
                Optional<Order> other = candidates.order(kind, costs);
                long nanos = other.flatMap(each -> simulated(each, then)).orElse(Long.MAX_VALUE);
                if (nanos < least) {
                    least = nanos;
                    chosen = other.orElseThrow();
                }
            }
        }
        var all =
                Arrays.stream(isWired() ? speedsOfRanks(profiles, work) : speeds)
                        .summaryStatistics();
        return new Proposal(
                partition, best, order, chosen, now, least, all.getMin() / all.getMax());
    }

    private boolean isWired() {
        return order.wiring().isPresent();
    }

    /** One for all ranks; where replicas share micro-batches, one for each rank. */
    private List<List<ProfileLine>> profiles(Measured measured) {
        return order.wiring()
                .map(wiring -> ofAllRanks(measured.ranks(), wiring))
                .orElseGet(() -> List.of(withBothBackwards(measured.stages())));
    }

    /**
     * A rank that did nothing is to its peers as the plan says: what it would take now is not
     * known.
     */
    private List<List<ProfileLine>> ofAllRanks(List<List<ProfileLine>> measured, Wiring wiring) {
        List<List<ProfileLine>> all = new ArrayList<>();
        for (int rank = 0; rank < measured.size(); rank++) {
            int known = rank;
            if (measured.get(rank).isEmpty()) {
                int stage = wiring.pipelineRankOf(rank);
                known =
                        IntStream.range(0, measured.size())
                                .filter(other -> wiring.pipelineRankOf(other) == stage)
                                .filter(other -> !measured.get(other).isEmpty())
                                .findFirst()
                                .orElseThrow();
            }
            double times = planned(rank) / planned(known);
            all.add(slower(withBothBackwards(measured.get(known)), times));
        }
        return all;
    }

    /** What a rank takes for a micro-batch by the costs that the order was made for. */
    private double planned(int rank) {
        List<Integer> costs = order.costs();
        return costs.isEmpty()
                ? 1
                : Math.max(
                        1,
                        costs.subList(KINDS.size() * rank, KINDS.size() * (rank + 1)).stream()
                                .mapToInt(cost -> cost)
                                .sum());
    }

    /** The same computations, each taking so many times as long. */
    private static List<ProfileLine> slower(List<ProfileLine> lines, double times) {
        List<ProfileLine> slower = new ArrayList<>();
        for (ProfileLine line : lines) {
            if (line
                    instanceof ProfileLine.Computation(var kind, int stage, int slice, long took)) {
                slower.add(
                        new ProfileLine.Computation(kind, stage, slice, Math.round(took * times)));
            }
        }
        return slower;
    }

    /** Of every rank that takes part. */
    private double[] speedsOfRanks(List<List<ProfileLine>> profiles, double[] work) {
        Wiring wiring = order.wiring().orElseThrow();
        return IntStream.range(0, wiring.ranks())
                .filter(wiring::isPresent)
                .mapToDouble(
                        rank -> {
                            List<Integer> stages =
                                    order.schedule()
                                            .placement()
                                            .stagesOf(wiring.pipelineRankOf(rank));
                            double done = stages.stream().mapToDouble(stage -> work[stage]).sum();
                            return done / Math.max(1, nanos(profiles.get(rank)));
                        })
                .toArray();
    }

    /** Of a forward and both parts of a backward. */
    private static double nanos(List<ProfileLine> lines) {
        return lines.stream()
                .filter(
                        line ->
                                line instanceof ProfileLine.Computation of
                                        && KINDS.contains(of.kind()))
                .mapToLong(line -> ((ProfileLine.Computation) line).nanos())
                .sum();
    }

    /** Of every stage, that of its rank. */
    private double[] speeds(List<ProfileLine> lines, double[] work) {
        double[] nanos = new double[work.length];
        for (ProfileLine line : lines) {
            if (line instanceof ProfileLine.Computation(_, int stage, _, long took)) {
                nanos[stage] += took;
            }
        }
        double[] speeds = new double[work.length];
        for (int stage = 0; stage < work.length; stage++) {
            int rank = order.schedule().placement().rankOf(stage);
            double done = 0;
            double took = 0;
            for (int each : order.schedule().placement().stagesOf(rank)) {
                done += work[each];
                took += nanos[each];
            }
            speeds[stage] = done / Math.max(1, took);
        }
        return speeds;
    }

    /** A stage with more work takes longer by as much: layers are alike. */
    private static List<ProfileLine> moved(List<ProfileLine> lines, double[] work, double[] then) {
        List<ProfileLine> moved = new ArrayList<>();
        for (ProfileLine line : lines) {
            moved.add(
                    line
                                    instanceof
                                    ProfileLine.Computation(
                                            var kind,
                                            int stage,
                                            int slice,
                                            long took)
                            ? new ProfileLine.Computation(
                                    kind,
                                    stage,
                                    slice,
                                    Math.round(took * then[stage] / Math.max(1, work[stage])))
                            : line);
        }
        return moved;
    }

    /** Orders differ in whether backwards are split; what was not measured is half, or the sum. */
    private static List<ProfileLine> withBothBackwards(List<ProfileLine> lines) {
        Map<Integer, Map<Integer, Map<ComputeKind, Long>>> known = new TreeMap<>();
        for (ProfileLine line : lines) {
            if (line
                    instanceof ProfileLine.Computation(var kind, int stage, int slice, long took)) {
                known.computeIfAbsent(stage, _ -> new TreeMap<>())
                        .computeIfAbsent(slice, _ -> new EnumMap<>(ComputeKind.class))
                        .put(kind, took);
            }
        }
        List<ProfileLine> all = new ArrayList<>(lines);
        known.forEach(
                (stage, slices) ->
                        slices.forEach(
                                (slice, kinds) ->
                                        otherBackward(kinds)
                                                .forEach(
                                                        (kind, took) ->
                                                                all.add(
                                                                        new ProfileLine.Computation(
                                                                                kind, stage, slice,
                                                                                took)))));
        return all;
    }

    private static Map<ComputeKind, Long> otherBackward(Map<ComputeKind, Long> known) {
        Map<ComputeKind, Long> other = new EnumMap<>(ComputeKind.class);
        Long whole = known.get(ComputeKind.BACKWARD);
        long input = known.getOrDefault(ComputeKind.BACKWARD_INPUT, 0L);
        long weight = known.getOrDefault(ComputeKind.BACKWARD_WEIGHT, 0L);
        if (whole == null) {
            other.put(ComputeKind.BACKWARD, input + weight);
        } else if (input == 0) {
            other.put(ComputeKind.BACKWARD_INPUT, whole / 2);
            other.put(ComputeKind.BACKWARD_WEIGHT, whole - whole / 2);
        }
        return other;
    }

    /**
     * Microseconds of every rank's ops, of its stages and slices together, in two digits: what is
     * measured is not known better.
     */
    private List<Integer> costs(List<List<ProfileLine>> profiles) {
        List<Integer> costs = new ArrayList<>();
        for (int rank = 0; rank < order.schedule().shape().ranks(); rank++) {
            List<ProfileLine> lines = profiles.get(isWired() ? rank : 0);
            for (ComputeKind kind : KINDS) {
                long nanos = 0;
                for (ProfileLine line : lines) {
                    if (line instanceof ProfileLine.Computation(var of, int stage, _, long took)
                            && of == kind
                            && (isWired() || order.schedule().placement().rankOf(stage) == rank)) {
                        nanos += took;
                    }
                }
                costs.add(twoDigits(nanos / NANOS_PER_MICRO));
            }
        }
        return costs;
    }

    private static int twoDigits(long number) {
        return BigDecimal.valueOf(number).round(TWO_DIGITS).intValueExact();
    }

    /** Empty if the order computes what nobody has measured. */
    private Optional<Long> simulated(Order run, List<List<ProfileLine>> profiles) {
        List<ProfileCosts> known = profiles.stream().map(ProfileCosts::new).toList();
        if (!isWired() && !known.getFirst().missing(run.schedule()).isEmpty()) {
            return Optional.empty();
        }
        CostModel costs = isWired() ? CostModel.ofRanks(known) : known.getFirst();
        CostModel whole = links.apply(costs, run.schedule());
        return Optional.of(
                ScheduleSimulator.simulate(run.schedule(), whole, run.inFlight()).makespanNanos());
    }
}
