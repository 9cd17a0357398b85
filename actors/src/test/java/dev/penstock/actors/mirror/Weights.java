package dev.penstock.actors.mirror;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;

/** A stage with nothing but a few trained tensors, and an optimizer with a memory. */
final class Weights implements StageMirror, TrainedState {
    private final int stage;
    private final DeviceScope scope;
    private final List<NamedTensor> gradients;
    private final List<NamedTensor> tensors;
    private int replaced;

    Weights(int stage, Device device) {
        this.stage = stage;
        this.scope = device.memory().child("weights " + stage, Long.MAX_VALUE);
        int large = 300_000 + stage;
        this.gradients = List.of(tensor("gradient a", 7), tensor("gradient b", large));
        this.tensors =
                List.of(tensor("a", 7), tensor("m.a", 7), tensor("b", large), tensor("m.b", large));
    }

    private NamedTensor tensor(String name, int columns) {
        return new NamedTensor(name, List.of(columns), scope.tensor(name, DType.F32, 1, columns));
    }

    /** Some values that only this seed gives. */
    Weights randomState(long seed) {
        tensors.forEach(named -> randomize(named.tensor(), seed));
        return this;
    }

    void randomGradients(long seed) {
        gradients.forEach(named -> randomize(named.tensor(), seed));
    }

    private static void randomize(Tensor tensor, long seed) {
        var random = new Random(seed);
        for (long i = 0; i < tensor.elements(); i++) {
            tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat());
        }
    }

    @Override
    public int stage() {
        return stage;
    }

    @Override
    public TrainedState trained() {
        return this;
    }

    @Override
    public List<NamedTensor> gradients() {
        return gradients;
    }

    @Override
    public List<NamedTensor> tensors() {
        return tensors;
    }

    @Override
    public void replaced() {
        replaced++;
    }

    int timesReplaced() {
        return replaced;
    }

    /** A step with momentum: what it comes to depends on all steps before. */
    @Override
    public void update(long step, double clipFactor) {
        for (int i = 0; i < gradients.size(); i++) {
            Tensor gradient = gradients.get(i).tensor();
            Tensor weight = tensors.get(2 * i).tensor();
            Tensor moment = tensors.get(2 * i + 1).tensor();
            for (long e = 0; e < gradient.elements(); e++) {
                float m = (float) (0.9f * get(moment, e) + clipFactor * get(gradient, e));
                set(moment, e, m);
                set(weight, e, get(weight, e) - m / step);
                set(gradient, e, 0);
            }
        }
    }

    private static float get(Tensor tensor, long i) {
        return tensor.segment().getAtIndex(ValueLayout.JAVA_FLOAT, i);
    }

    private static void set(Tensor tensor, long i, float value) {
        tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
    }

    /** Whether weights and moments are the same in every bit. */
    boolean isEqualTo(TrainedState other) {
        for (int i = 0; i < tensors.size(); i++) {
            var theirs = other.tensors().get(i).tensor().segment();
            if (tensors.get(i).tensor().segment().mismatch(theirs) >= 0) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void close() {
        scope.close();
    }
}
