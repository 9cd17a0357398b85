package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * The losses of a run in which nothing goes wrong, from whole sequences at once and in double
 * precision, whatever the order of work. A stage's weights act as one, their sum: each has the
 * gradient of that, times its factor.
 */
final class ClosedForm {
    private final Scenario scenario;
    private final RankGrid grid;
    private final double[] sums;

    /** By how much a sum changes if its gradient is 1, before the rate. */
    private final double squares;

    private ClosedForm(Scenario scenario) {
        this.scenario = scenario;
        this.grid = scenario.grid();
        this.sums = IntStream.range(0, grid.pipeline()).mapToDouble(this::firstSum).toArray();
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
        double[] moments = new double[sums.length];
        losses.heldOut.put(0L, heldOut());
        for (long step = 1; step <= scenario.steps(); step++) {
            if (!scenario.skips() || step != scenario.nanStep()) {
                losses.losses.put(step, loss(StepKind.TRAIN, step));
                update(step, moments);
            }
            losses.heldOut.put(step, heldOut());
        }
        return losses;
    }

    private double heldOut() {
        return (loss(StepKind.EVALUATE, 0) + loss(StepKind.EVALUATE, 1)) / 2;
    }

    private double loss(StepKind kind, long step) {
        return attended(kind, step) * Arrays.stream(sums).reduce(1, (a, b) -> a * b);
    }

    private void update(long step, double[] moments) {
        double[] gradients = new double[sums.length];
        double square = 0;
        for (int stage = 0; stage < sums.length; stage++) {
            gradients[stage] = attended(StepKind.TRAIN, step);
            for (int other = 0; other < sums.length; other++) {
                gradients[stage] *= other == stage ? 1 : sums[other];
            }
            square += squares * gradients[stage] * gradients[stage];
        }
        double clip =
                scenario.clipNorm() > 0
                        ? Math.min(1, scenario.clipNorm() / (Math.sqrt(square) + 1e-6))
                        : 1;
        for (int stage = 0; stage < sums.length; stage++) {
            moments[stage] = 0.5 * moments[stage] + clip * squares * gradients[stage];
            sums[stage] -= SimStage.RATE * moments[stage];
        }
    }

    /** The mean over all tokens of the data after the attention of every stage. */
    private double attended(StepKind kind, long step) {
        double sum = 0;
        for (int replica = 0; replica < grid.data(); replica++) {
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
        return sum / (grid.data() * grid.context() * scenario.unitsPerStage());
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
