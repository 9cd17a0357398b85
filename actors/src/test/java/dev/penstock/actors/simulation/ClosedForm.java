package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * The losses of a run in which nothing goes wrong, from whole sequences at once and in double
 * precision, whatever the order of work. A stage's weights act as one, their sum: each has the
 * gradient of that, times its factor. Replicas that take steps alone have a sum each, and one that
 * is their anchor.
 */
final class ClosedForm {
    private final Scenario scenario;
    private final RankGrid grid;

    /** Replicas with the same weights. */
    private final int alike;

    /** By replica, or one for all, and by stage. */
    private final double[][] sums;

    private final double[][] moments;

    /** By stage; unused where replicas are equal. */
    private final double[] anchors;

    private double[] difference = {};

    /** The step after which the difference is applied, if there is one. */
    private long due;

    /** By how much a sum changes if its gradient is 1, before the rate. */
    private final double squares;

    private ClosedForm(Scenario scenario) {
        this.scenario = scenario;
        this.grid = scenario.grid();
        this.alike = scenario.every() > 0 ? 1 : grid.data();
        this.anchors = IntStream.range(0, grid.pipeline()).mapToDouble(this::firstSum).toArray();
        this.sums = new double[grid.data() / alike][];
        Arrays.setAll(sums, _ -> anchors.clone());
        this.moments = new double[sums.length][grid.pipeline()];
        this.squares =
                grid.tensor()
                        * IntStream.range(0, SimStage.weights(grid))
                                .mapToDouble(i -> SimStage.factor(i) * SimStage.factor(i))
                                .sum();
    }

    private double firstSum(int stage) {
        return IntStream.range(0, grid.tensor())
                .mapToDouble(
                        shard ->
                                IntStream.range(0, SimStage.weights(grid))
                                        .mapToDouble(
                                                i ->
                                                        SimStage.factor(i)
                                                                * SimStage.firstWeight(
                                                                        grid, stage, shard, i))
                                        .sum())
                .sum();
    }

    static Truth of(Scenario scenario) {
        return new ClosedForm(scenario).run();
    }

    private Truth run() {
        var losses = new Truth();
        losses.heldOut.put(0L, heldOut());
        long updated = 0;
        for (long step = 1; step <= scenario.steps(); step++) {
            exchange(step - 1);
            if (!scenario.skips() || step != scenario.nanStep()) {
                losses.losses.put(step, loss(StepKind.TRAIN, step));
                update(step);
                updated = step;
            }
            exchange(updated);
            losses.heldOut.put(step, heldOut());
        }
        return losses;
    }

    private double heldOut() {
        return (loss(StepKind.EVALUATE, 0) + loss(StepKind.EVALUATE, 1)) / 2;
    }

    /** The mean over all replicas. */
    private double loss(StepKind kind, long step) {
        double loss = 0;
        for (int i = 0; i < sums.length; i++) {
            boolean heldOut = scenario.every() > 0 && kind == StepKind.EVALUATE;
            double slope = Arrays.stream(heldOut ? anchors : sums[i]).reduce(1, (a, b) -> a * b);
            loss += attended(kind, step, i) * slope / sums.length;
        }
        return loss;
    }

    private void update(long step) {
        double[][] gradients = new double[sums.length][grid.pipeline()];
        double square = 0;
        for (int i = 0; i < sums.length; i++) {
            double attended = attended(StepKind.TRAIN, step, i);
            for (int stage = 0; stage < grid.pipeline(); stage++) {
                gradients[i][stage] = attended;
                for (int other = 0; other < grid.pipeline(); other++) {
                    gradients[i][stage] *= other == stage ? 1 : sums[i][other];
                }
                square += squares * gradients[i][stage] * gradients[i][stage] / sums.length;
            }
        }
        double clip =
                scenario.clipNorm() > 0
                        ? Math.min(1, scenario.clipNorm() / (Math.sqrt(square) + 1e-6))
                        : 1;
        for (int i = 0; i < sums.length; i++) {
            for (int stage = 0; stage < grid.pipeline(); stage++) {
                moments[i][stage] = 0.5 * moments[i][stage] + clip * squares * gradients[i][stage];
                sums[i][stage] -= SimStage.RATE * moments[i][stage];
            }
        }
        if (scenario.every() > 0 && step % scenario.every() == 0) {
            due = step + scenario.lag();
            difference = anchors.clone();
            for (int stage = 0; stage < grid.pipeline(); stage++) {
                for (double[] each : sums) {
                    difference[stage] -= each[stage] / sums.length;
                }
            }
        }
    }

    /** Applies the difference if it is due after a step. */
    private void exchange(long step) {
        if (due == 0 || step < due) {
            return;
        }
        due = 0;
        for (int stage = 0; stage < grid.pipeline(); stage++) {
            anchors[stage] -= SimExchange.RATE * difference[stage];
            for (double[] each : sums) {
                each[stage] = (each[stage] + anchors[stage]) / 2;
            }
        }
    }

    /**
     * The mean over all tokens of the data after the attention of every stage.
     *
     * @param which of the replicas, if they take steps alone
     */
    private double attended(StepKind kind, long step, int which) {
        double sum = 0;
        for (int replica = which * alike; replica < (which + 1) * alike; replica++) {
            for (int batch = 0; batch < Scenario.MICRO_BATCHES; batch++) {
                double[][] tokens = new double[grid.context()][scenario.slices()];
                for (int part = 0; part < grid.context(); part++) {
                    for (int slice = 0; slice < scenario.slices(); slice++) {
                        var place = new RankPlace(0, 0, part, replica);
                        tokens[part][slice] = SimStage.data(kind, step, place, batch, slice);
                    }
                }
                for (int stage = 0; stage < grid.pipeline(); stage++) {
                    tokens = attention(tokens);
                }
                sum += Arrays.stream(tokens).flatMapToDouble(Arrays::stream).sum();
            }
        }
        return sum / (alike * grid.context() * scenario.unitsPerStage());
    }

    private double[][] attention(double[][] tokens) {
        double[][] attended = new double[grid.context()][scenario.slices()];
        for (int part = 0; part < grid.context(); part++) {
            for (int slice = 0; slice < scenario.slices(); slice++) {
                attended[part][slice] = tokens[part][slice];
                for (int other = 0; other < grid.context(); other++) {
                    int hops = (part - other + grid.context()) % grid.context();
                    int seen = SimAttention.seen(slice, part, other);
                    for (int i = 0; i < seen; i++) {
                        attended[part][slice] += SimAttention.share(hops) * tokens[other][i];
                    }
                }
            }
        }
        return attended;
    }
}
