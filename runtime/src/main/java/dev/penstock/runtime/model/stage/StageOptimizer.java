package dev.penstock.runtime.model.stage;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.ParameterGroup;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.AdamWSettings;

/**
 * AdamW over a rank's part of a stage's parameters: some decay, others do not, whatever group they
 * lie in.
 */
final class StageOptimizer {
    private final Kernels kernels;
    private final AdamWSettings settings;
    private final StageParameters parameters;

    StageOptimizer(Kernels kernels, AdamWSettings settings, StageParameters parameters) {
        this.kernels = kernels;
        this.settings = settings;
        this.parameters = parameters;
    }

    /** Updates the held part and clears its gradients. */
    void update(long step, double clipFactor) {
        AdamWStep decaying = numbers(step, clipFactor, settings.weightDecay());
        AdamWStep steady = numbers(step, clipFactor, 0);
        for (Parameter p : parameters.trained()) {
            boolean decays = settings.decayAll() || !p.spec().vector();
            kernels.adamW(
                    p.heldMaster(),
                    p.heldGradient(),
                    p.heldM(),
                    p.heldV(),
                    decays ? decaying : steady);
        }
        parameters.groups().stream()
                .filter(ParameterGroup::isTrained)
                .forEach(group -> group.masterChanged(kernels));
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
