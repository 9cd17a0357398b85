package dev.penstock.runtime.adapt;

import static dev.penstock.runtime.model.shape.RetentionDesign.Decay.USUAL;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.BlockDesign.Activation;
import dev.penstock.runtime.model.shape.BlockDesign.Biases;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.RetentionDesign;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.ComputeKind;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ProfileLine;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Layers of equal work, of which head and embedding cost next to nothing. */
class SpeedModelTest {
    private static final int MICRO_BATCHES = 64;

    static final SpeedModel.Candidates NO_OTHERS =
            new SpeedModel.Candidates() {
                @Override
                public List<String> kinds() {
                    return List.of();
                }

                @Override
                public Optional<SpeedModel.Order> order(String kind, List<Integer> costs) {
                    return Optional.empty();
                }
            };

    private static SpeedModel model(Integer... layers) {
        int all = Arrays.stream(layers).mapToInt(n -> n).sum();
        return model(ModelShape.gpt2(2, 2, 96, all, 3, true), new StagePartition(List.of(layers)));
    }

    private static SpeedModel model(ModelShape shape, StagePartition partition) {
        Schedule order =
                Lowering.lower(
                        Generators.generate(
                                "1f1b", PipelineShape.of(partition.stages(), MICRO_BATCHES)));
        return new SpeedModel(
                new SpeedModel.Order("1f1b", List.of(), order, InFlight.auto(order)),
                partition,
                new TrainedParts(shape, FineTuning.FULL),
                true,
                NO_OTHERS,
                (costs, _) -> costs,
                1_000);
    }

    /** A layer takes a rank of speed 1 a million nanoseconds forward and two backward. */
    private static Measured lines(List<Integer> layers, double... speeds) {
        List<ProfileLine> lines = new ArrayList<>();
        for (int stage = 0; stage < speeds.length; stage++) {
            long nanos = Math.round(1e6 * layers.get(stage) / speeds[stage]);
            lines.add(new ProfileLine.Computation(ComputeKind.FORWARD, stage, 0, nanos));
            lines.add(new ProfileLine.Computation(ComputeKind.BACKWARD, stage, 0, 2 * nanos));
        }
        return new Measured(lines, List.of());
    }

    @Test
    void ranksOfOneSpeedKeepTheirLayers() {
        SpeedModel.Proposal same = model(4, 4).propose(lines(List.of(4, 4), 1, 1), List.of(8, 8));

        assertThat(same.partition().layersPerStage()).containsExactly(4, 4);
        assertThat(same.nanosThen()).isEqualTo(same.nanosNow());
    }

    /** The steps of 1F1B: all micro-batches on the slowest stage, and one of the others. */
    @Test
    void aRankOfAThirdOfTheSpeedGetsAThirdOfTheLayersOfTheOther() {
        SpeedModel.Proposal found =
                model(4, 4).propose(lines(List.of(4, 4), 1, 1.0 / 3), List.of(8, 8));

        assertThat(found.partition().layersPerStage()).containsExactly(6, 2);
        double before = MICRO_BATCHES * 36e6 + 12e6;
        double after = MICRO_BATCHES * 18e6 + 18e6;
        assertThat((double) found.nanosNow()).isCloseTo(before, within(0.01 * before));
        assertThat((double) found.nanosThen()).isCloseTo(after, within(0.01 * after));
        assertThat(found.slowest()).isCloseTo(1.0 / 3, within(0.01));
    }

    /** The bound for 7 ranks of speed 1 and one of 2/3 is 91 %; layers are whole. */
    @Test
    void ofWhatAStageCostsThatIsSlowerByAHalfMoreThanFourFifthsComeBack() {
        Integer[] even = new Integer[8];
        Arrays.fill(even, 16);
        double[] speeds = new double[8];
        Arrays.fill(speeds, 1);
        SpeedModel model = model(even);
        double usual = model.propose(lines(List.of(even), speeds), model.anyLayers()).nanosNow();
        speeds[3] = 1 / 1.5;

        SpeedModel.Proposal found = model.propose(lines(List.of(even), speeds), model.anyLayers());

        assertThat(found.partition().layersPerStage().get(3)).isBetween(9, 11);
        double lost = found.nanosNow() - usual;
        double back = found.nanosNow() - found.nanosThen();
        assertThat(back / lost).isBetween(0.8, 0.91);
    }

    /**
     * Half of the layers attend, half retain, and attention takes three times as long as its FLOPs
     * say. What the ranks took moves the border until no other one would be faster.
     */
    @Test
    void theBorderBetweenUnlikeLayersFollowsWhatTheyTake() {
        List<Integer> kinds = new ArrayList<>(Collections.nCopies(6, BlockDesign.RETAINED));
        kinds.addAll(Collections.nCopies(6, BlockDesign.ALL));
        ModelShape shape = unlike(kinds);
        StagePartition first = StagePartition.byFlops(shape, 2);
        assertThat(first.layersPerStage()).containsExactly(5, 7); // a retention has more products

        StagePartition now = first;
        for (int look = 0; look < 4; look++) {
            SpeedModel model = model(shape, now);
            now = model.propose(taking(shape, now), model.anyLayers()).partition();
        }

        assertThat(nanos(shape, now)).isLessThan(nanos(shape, first));
        for (int border = 1; border < 12; border++) {
            StagePartition other = new StagePartition(List.of(border, 12 - border));
            assertThat(nanos(shape, now)).isLessThanOrEqualTo(nanos(shape, other));
        }
    }

    private static ModelShape unlike(List<Integer> kinds) {
        var heads = new HeadDesign(4, 4, 24, false, false, new RetentionDesign(48, true, USUAL));
        return new ModelShape(
                2,
                64,
                96,
                kinds.size(),
                new BlockDesign(NormDesign.GPT2, heads, Biases.NONE, Activation.GEGLU, 128, kinds),
                new Positions.Rotary(64, 10_000, Optional.empty(), true),
                true);
    }

    private static long nanos(ModelShape shape, int layer) {
        return shape.layerFlops(layer, 64) * (shape.block().retains(layer) ? 1 : 3);
    }

    private static long nanos(ModelShape shape, StagePartition partition, int stage) {
        int first = partition.role(stage).firstLayer();
        return IntStream.range(first, first + partition.role(stage).layers())
                .mapToLong(layer -> nanos(shape, layer))
                .sum();
    }

    /** Of the stage that takes longest. */
    private static long nanos(ModelShape shape, StagePartition partition) {
        return Math.max(nanos(shape, partition, 0), nanos(shape, partition, 1));
    }

    private static Measured taking(ModelShape shape, StagePartition partition) {
        List<ProfileLine> lines = new ArrayList<>();
        for (int stage = 0; stage < partition.stages(); stage++) {
            long nanos = nanos(shape, partition, stage);
            lines.add(new ProfileLine.Computation(ComputeKind.FORWARD, stage, 0, nanos));
            lines.add(new ProfileLine.Computation(ComputeKind.BACKWARD, stage, 0, 2 * nanos));
        }
        return new Measured(lines, List.of());
    }
}
