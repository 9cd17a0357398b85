package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpPlace;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Where a rank gathers a stage's parameters, they are there whenever the stage computes. A stage
 * that nobody gathers has its parameters always. A stage's layers are those that the conditions
 * weigh, else those that its gathers name.
 */
final class Residency {
    private final PipelineShape shape;
    private final Optional<MemoryModel> weights;
    private final List<Violation> violations = new ArrayList<>();

    Residency(Schedule schedule, Optional<MemoryModel> weights) {
        this.shape = schedule.shape();
        this.weights = weights.filter(model -> model.gatheredBytes().size() == shape.stages());
        schedule.programs().forEach(this::check);
    }

    List<Violation> violations() {
        return violations;
    }

    private void check(RankProgram program) {
        Map<Integer, Stage> stages = new TreeMap<>();
        for (Op op : program.ops()) {
            if (op instanceof Op.ParameterOp named) {
                stages.computeIfAbsent(named.stage(), this::stage).name(named.layers());
            }
        }
        if (stages.isEmpty()) {
            return;
        }
        for (int i = 0; i < program.ops().size(); i++) {
            Op op = program.ops().get(i);
            var place = new OpPlace(program.rank(), i, op);
            switch (op) {
                case Op.GatherParameters(int stage, LayerRange layers) ->
                        gather(place, Objects.requireNonNull(stages.get(stage)), layers);
                case Op.ReleaseParameters(int stage, LayerRange layers) ->
                        release(place, Objects.requireNonNull(stages.get(stage)), layers);
                case Op.Compute _, Op.Overlapped _ -> {
                    for (Op.Compute part : op.computations()) {
                        compute(place, part, stages);
                    }
                }
                case Op.Transfer _, Op.ActivationOp _, Op.ReduceGradients _ -> {}
            }
        }
    }

    private Stage stage(int number) {
        return weights.filter(_ -> number < shape.stages())
                .map(model -> new Stage(model.gatheredBytes().get(number).size(), true))
                .orElseGet(() -> new Stage(1, false));
    }

    private void gather(OpPlace place, Stage stage, LayerRange layers) {
        if (!stage.has(layers)) {
            violations.add(
                    new Violation.Unexpected(
                            place,
                            at(place)
                                    + "gathers layers that are not there: the stage has %d"
                                            .formatted(stage.layers)));
        } else if (!stage.gather(layers)) {
            violations.add(
                    new Violation.Unexpected(place, at(place) + "gathers what is there already"));
        }
    }

    private void release(OpPlace place, Stage stage, LayerRange layers) {
        if (!stage.release(layers)) {
            violations.add(
                    new Violation.NotResident(place, at(place) + "releases what was not gathered"));
        }
    }

    private void compute(OpPlace place, Op.Compute op, Map<Integer, Stage> stages) {
        Stage stage = stages.get(op.stage());
        if (stage != null && !stage.isResident()) {
            violations.add(
                    new Violation.NotResident(
                            place,
                            at(place)
                                    + "needs the parameters of stage %d, which are not gathered there"
                                            .formatted(op.stage())));
        }
    }

    private String at(OpPlace place) {
        return "rank %d, op %d: %s "
                .formatted(place.rank(), place.position(), OpText.print(place.op(), shape));
    }

    /** Which layers of a stage are there. */
    private static final class Stage {
        private final BitSet resident = new BitSet();
        private final boolean known;
        private int layers;

        Stage(int layers, boolean known) {
            this.layers = layers;
            this.known = known;
        }

        void name(LayerRange range) {
            if (!range.isAll() && !known) {
                layers = Math.max(layers, range.last() + 1);
            }
        }

        boolean has(LayerRange range) {
            return range.isAll() || range.last() < layers;
        }

        /** Whether none of the layers was there before. */
        boolean gather(LayerRange range) {
            boolean fresh = resident.get(range.first(), end(range)).isEmpty();
            resident.set(range.first(), end(range));
            return fresh;
        }

        /** Whether all of the layers were there before. */
        boolean release(LayerRange range) {
            int held = resident.get(range.first(), end(range)).cardinality();
            resident.clear(range.first(), end(range));
            return held == end(range) - range.first();
        }

        boolean isResident() {
            return resident.cardinality() == layers;
        }

        private int end(LayerRange range) {
            return range.isAll() ? layers : range.last() + 1;
        }
    }
}
