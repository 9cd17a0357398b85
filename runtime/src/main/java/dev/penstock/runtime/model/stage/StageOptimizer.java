package dev.penstock.runtime.model.stage;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.Kernels;
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
    private long skipped;

    StageOptimizer(Kernels kernels, AdamWSettings settings, StageParameters parameters) {
        this.kernels = kernels;
        this.settings = settings;
        this.parameters = parameters;
    }

    /** So many steps before the next update were none of this optimizer's. */
    void skipped(long steps) {
        skipped = steps;
    }

    /** Updates the held part with what follows it, and clears its gradients. */
    void update(long step, double clipFactor) {
        long updates = step - skipped;
        kernels.adamW(
                parameters.trained().stream()
                        .map(p -> p.update(settings.decayAll() || !p.spec().vector()))
                        .toList(),
                new AdamWStep(
                        updates,
                        settings.learningRate().at(updates),
                        settings.beta1(),
                        settings.beta2(),
                        settings.epsilon(),
                        settings.weightDecay(),
                        clipFactor));
    }
}
