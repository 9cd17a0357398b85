package dev.penstock.runtime.model.stage;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.memory.CountingScope;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Runs every kind of op of a stage once for each length that sequences may have, over tensors
 * without memory, so that kernels can count what they will hold for themselves: prediction and run
 * call the same kernels with the same shapes. A shorter sequence can take more: products of few
 * rows are padded.
 */
public final class KernelRehearsal {
    private final StageRole role;
    private final BatchShape batch;
    private final boolean split;
    private final List<Integer> lengths;
    private final GptStage stage;
    private final CountingScope boundaries = new CountingScope("boundaries");

    private KernelRehearsal(
            GptSettings settings,
            StageRole role,
            RankPlace place,
            boolean split,
            CountedKernels kernels,
            List<Integer> lengths) {
        this.role = role;
        this.split = split;
        this.lengths = List.copyOf(lengths);
        batch = settings.batchOfPart();
        StageBudget oneMicroBatch =
                new StageBudget(
                        batch.slices(),
                        Collections.nCopies(batch.slices(), 1),
                        1,
                        1,
                        split ? batch.slices() : 0);
        stage = GptStage.counting(settings, role, oneMicroBatch, place, kernels);
        var grid = settings.grid();
        stage.connect(
                new StageGroups(
                        new AbsentGroup(grid.shardsOf(place.pipeline()), place.tensor()),
                        new AbsentGroup(grid.context(), place.context()),
                        new AbsentGroup(
                                grid.context() * grid.data(),
                                place.data() * grid.context() + place.context()),
                        IntStream.range(0, TensorMesh.AXES)
                                .<CollectiveGroup>mapToObj(
                                        axis ->
                                                new AbsentGroup(
                                                        grid.mesh().size(axis),
                                                        grid.mesh().at(place.tensor(), axis)))
                                .toList()));
        boolean gatheredByOps =
                Sharding.of(settings, place).parameters()
                        && settings.zero().residency() != ZeroSettings.Residency.LAYER;
        if (gatheredByOps) {
            stage.gather(LayerRange.ALL, true);
        }
    }

    /**
     * Lets kernels count what they hold for a stage.
     *
     * @param split whether its backwards come in two parts
     * @param lengths that sequences may have, in tokens
     */
    public static void of(
            GptSettings settings,
            StageRole role,
            RankPlace place,
            boolean split,
            CountedKernels kernels,
            List<Integer> lengths) {
        var rehearsal = new KernelRehearsal(settings, role, place, split, kernels, lengths);
        rehearsal.train();
        rehearsal.evaluate();
        kernels.squaredNorms(
                rehearsal.stage.parameters().stream()
                        .filter(p -> p.isTrained() && p.spec().counted() && p.own().count() > 0)
                        .map(Parameter::ownGradient)
                        .toList());
        rehearsal.stage.update(1, 1);
        rehearsal.stage.close();
    }

    private void train() {
        lengths.forEach(this::train);
    }

    private void train(int tokens) {
        stage.begin(StepKind.TRAIN, 1, tokens);
        for (int slice = 0; slice < batch.slices(); slice++) {
            stage.forward(unit(slice), before(slice), behind(slice));
        }
        for (int slice = batch.slices() - 1; slice >= 0; slice--) {
            if (split) {
                stage.backwardInput(unit(slice), before(slice), behind(slice), before(slice));
                stage.backwardWeight(unit(slice));
            } else {
                stage.backward(unit(slice), before(slice), behind(slice), before(slice));
            }
        }
    }

    private void evaluate() {
        for (int tokens : lengths) {
            stage.begin(StepKind.EVALUATE, 0, tokens);
            for (int slice = 0; slice < batch.slices(); slice++) {
                stage.forward(unit(slice), before(slice), behind(slice));
            }
        }
    }

    private WorkUnit unit(int slice) {
        return new WorkUnit(role.stage(), 0, slice);
    }

    private @Nullable Tensor before(int slice) {
        return role.first() ? null : boundary(slice);
    }

    private @Nullable Tensor behind(int slice) {
        return role.last() ? null : boundary(slice);
    }

    private Tensor boundary(int slice) {
        return boundaries.tensor(
                "boundary", DType.F32, stage.boundaryRows(unit(slice)), stage.boundaryColumns());
    }

    /** A group of other ranks that do not exist and are never waited for. */
    private record AbsentGroup(int size, int index) implements CollectiveGroup {
        @Override
        public Collective reduceScatter(Tensor whole, ShardMap map) {
            return SoloGroup.DONE;
        }

        @Override
        public Collective allGather(Tensor whole, ShardMap map) {
            return SoloGroup.DONE;
        }

        @Override
        public Collective allReduce(Tensor tensor) {
            return SoloGroup.DONE;
        }

        @Override
        public Collective pass(Tensor sent, Tensor received) {
            return SoloGroup.DONE;
        }

        @Override
        public void await(Collective collective) {}

        @Override
        public long sentBytes(CollectiveKind kind) {
            return 0;
        }
    }
}
