package dev.penstock.schedules.validate;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.BitSet;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;

/**
 * Walks the program of one rank and weighs what it holds. An op holds what it makes and what it
 * needs until it ends. Ops that make no sense are passed over.
 */
final class HeldBytes {
    private final PipelineShape shape;

    /** Stages whose units live until their backward; others run forward alone. */
    private final BitSet backwards = new BitSet();

    /** Stages whose units live until their backward for the weights, where that is split. */
    private final BitSet weights = new BitSet();

    private final RankProgram program;
    private final MemoryModel model;
    private final Map<Integer, Stage> stages = new TreeMap<>();
    private long activations;
    private long inputs;
    private long gathered;
    private long away;
    private long mostAway;

    HeldBytes(PipelineShape shape, PassKind passKind, RankProgram program, MemoryModel model) {
        this.shape = shape;
        this.program = program;
        this.model = model;
        for (Op op : program.ops()) {
            if (op instanceof Op.Recompute(WorkUnit unit) && shape.contains(unit)) {
                stage(unit.stage()).recomputed.set(index(unit));
            }
            for (Op.Compute part : op.computations()) {
                if (passKind == PassKind.TRAINING && !(part instanceof Op.Forward)) {
                    backwards.set(part.stage());
                }
                if (part instanceof Op.BackwardWeight) {
                    weights.set(part.stage());
                }
            }
        }
    }

    /** Runs the program. */
    RankBytes peak() {
        var peak = new RankBytes(program.rank(), 0, 0, 0, 0, 0);
        for (int i = 0; i < program.ops().size(); i++) {
            Op op = program.ops().get(i);
            begin(op);
            if (activations + inputs + gathered > peak.peakBytes()) {
                peak = new RankBytes(program.rank(), i, activations, inputs, gathered, 0);
            }
            end(op);
        }
        return peak.withHost(mostAway);
    }

    /** Runs the program to an op and stops while that runs. */
    HeldBytes at(int position) {
        for (int i = 0; i < position; i++) {
            begin(program.ops().get(i));
            end(program.ops().get(i));
        }
        begin(program.ops().get(position));
        return this;
    }

    /** "3 of stage 0, 1 of stage 2". */
    String liveUnits() {
        return count(stage -> stage.live.cardinality());
    }

    /** Units that wait to be recomputed. */
    String parkedUnits() {
        return count(stage -> stage.parked.cardinality());
    }

    /** Gathered layers. */
    String gatheredLayers() {
        return count(stage -> stage.layers.cardinality());
    }

    private String count(ToIntFunction<Stage> things) {
        return stages.entrySet().stream()
                .filter(stage -> things.applyAsInt(stage.getValue()) > 0)
                .map(stage -> things.applyAsInt(stage.getValue()) + " of stage " + stage.getKey())
                .collect(Collectors.joining(", "));
    }

    private void begin(Op op) {
        if (op instanceof Op.GatherParameters(int stage, LayerRange layers)
                && stage < shape.stages()) {
            for (int i = layers.first(); i < model.end(stage, layers); i++) {
                gathered += stage(stage).layers.get(i) ? 0 : model.layer(stage, i);
                stage(stage).layers.set(i);
            }
        }
        if (op instanceof Op.Reload(WorkUnit unit) && shape.contains(unit)) {
            open(unit);
        } else if (op instanceof Op.Offload(WorkUnit unit) && shape.contains(unit)) {
            leave(unit);
        }
        for (Op.Compute part : op.computations()) {
            boolean makesActivations = part instanceof Op.Forward || part instanceof Op.Recompute;
            if (makesActivations && shape.contains(part.unit())) {
                unpark(part.unit());
                open(part.unit());
            }
            if (part instanceof Op.BackwardInput(WorkUnit unit)
                    && shape.contains(unit)
                    && weights.get(unit.stage())) {
                keepForWeight(unit);
            }
        }
    }

    private void end(Op op) {
        if (op instanceof Op.ReleaseParameters(int stage, LayerRange layers)
                && stage < shape.stages()) {
            for (int i = layers.first(); i < model.end(stage, layers); i++) {
                gathered -= stage(stage).layers.get(i) ? model.layer(stage, i) : 0;
                stage(stage).layers.clear(i);
            }
        }
        if (op instanceof Op.Offload(WorkUnit unit) && shape.contains(unit)) {
            close(unit);
        } else if (op instanceof Op.Reload(WorkUnit unit) && shape.contains(unit)) {
            comeBack(unit);
        }
        for (Op.Compute part : op.computations()) {
            if (shape.contains(part.unit())) {
                end(part);
            }
        }
    }

    private void end(Op.Compute op) {
        switch (op) {
            case Op.Forward(WorkUnit unit) when !backwards.get(unit.stage()) -> close(unit);
            case Op.Forward(WorkUnit unit) when stage(unit.stage()).recomputed.get(index(unit)) -> {
                close(unit);
                stage(unit.stage()).parked.set(index(unit));
                inputs += model.input(unit.stage(), unit.slice());
            }
            case Op.Backward(WorkUnit unit) -> close(unit);
            case Op.BackwardWeight(WorkUnit unit) -> close(unit);
            case Op.BackwardInput(WorkUnit unit) when !weights.get(unit.stage()) -> close(unit);
            case Op.Forward _, Op.Recompute _, Op.BackwardInput _ -> {}
        }
    }

    private void open(WorkUnit unit) {
        if (!stage(unit.stage()).live.get(index(unit))) {
            stage(unit.stage()).live.set(index(unit));
            activations += model.activation(unit.stage(), unit.slice());
        }
    }

    private void close(WorkUnit unit) {
        if (stage(unit.stage()).live.get(index(unit))) {
            stage(unit.stage()).live.clear(index(unit));
            activations -= model.activation(unit.stage(), unit.slice());
            if (stage(unit.stage()).awaitingWeight.get(index(unit))) {
                stage(unit.stage()).awaitingWeight.clear(index(unit));
                activations -= model.weight(unit.stage(), unit.slice());
            }
        }
    }

    private void keepForWeight(WorkUnit unit) {
        Stage stage = stage(unit.stage());
        if (stage.live.get(index(unit)) && !stage.awaitingWeight.get(index(unit))) {
            stage.awaitingWeight.set(index(unit));
            activations += model.weight(unit.stage(), unit.slice());
        }
    }

    private void unpark(WorkUnit unit) {
        if (stage(unit.stage()).parked.get(index(unit))) {
            stage(unit.stage()).parked.clear(index(unit));
            inputs -= model.input(unit.stage(), unit.slice());
        }
    }

    private void leave(WorkUnit unit) {
        if (stage(unit.stage()).live.get(index(unit))
                && !stage(unit.stage()).away.get(index(unit))) {
            stage(unit.stage()).away.set(index(unit));
            away += model.activation(unit.stage(), unit.slice());
            mostAway = Math.max(mostAway, away);
        }
    }

    private void comeBack(WorkUnit unit) {
        if (stage(unit.stage()).away.get(index(unit))) {
            stage(unit.stage()).away.clear(index(unit));
            away -= model.activation(unit.stage(), unit.slice());
        }
    }

    private Stage stage(int stage) {
        return stages.computeIfAbsent(stage, _ -> new Stage());
    }

    private int index(WorkUnit unit) {
        return unit.microBatch() * shape.slices() + unit.slice();
    }

    /** What is held of one stage. */
    private static final class Stage {
        final BitSet live = new BitSet();
        final BitSet parked = new BitSet();
        final BitSet away = new BitSet();
        final BitSet recomputed = new BitSet();
        final BitSet awaitingWeight = new BitSet();
        final BitSet layers = new BitSet();
    }
}
