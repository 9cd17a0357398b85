package dev.penstock.runtime.model;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.Kernels;
import java.util.List;

/** AdamW over a stage's parameters, in two groups: those that decay and those that do not. */
final class StageOptimizer {
    private final Kernels kernels;
    private final AdamWSettings settings;
    private final List<Parameter> parameters;

    StageOptimizer(Kernels kernels, AdamWSettings settings, List<Parameter> parameters) {
        this.kernels = kernels;
        this.settings = settings;
        this.parameters = parameters;
    }

    /** Updates all parameters and clears their gradients. */
    void update(long step, double clipFactor) {
        AdamWStep decaying = numbers(step, clipFactor, settings.weightDecay());
        AdamWStep steady = numbers(step, clipFactor, 0);
        for (Parameter p : parameters) {
            Parameter.Training training = p.trained();
            boolean decays = settings.decayAll() || !p.spec().vector();
            kernels.adamW(
                    p.weight(),
                    training.gradient(),
                    training.m(),
                    training.v(),
                    decays ? decaying : steady);
            if (p.hasCopy()) {
                kernels.copy(p.weight(), p.factor());
            }
        }
    }

    private AdamWStep numbers(long step, double clipFactor, double decay) {
        return new AdamWStep(
                step,
                settings.learningRate().at(step),
                settings.beta1(),
                settings.beta2(),
                settings.epsilon(),
                decay,
                clipFactor);
    }
}
