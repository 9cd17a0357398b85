package dev.penstock.runtime.model.stage;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.ParameterGroup;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.SwapCommit;
import dev.penstock.runtime.model.swap.SwappedGroup;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/**
 * AdamW over a rank's part of a stage's parameters: some decay, others do not, whatever group they
 * lie in.
 */
final class StageOptimizer {
    private static final long UNKNOWN = -1;

    private final Kernels kernels;
    private final AdamWSettings settings;
    private final StageParameters parameters;
    private long skipped;

    /** The step of the last update, once the first step has begun. */
    private long last = UNKNOWN;

    /** The steps that overflowed since the run began in this process or an earlier one. */
    private final List<Long> overflows = new ArrayList<>();

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
        kernels.adamW(
                parameters.trained().stream().map(p -> p.update(decays(p))).toList(),
                step(step - skipped, clipFactor));
    }

    /** A training step begins. */
    void begin(long step) {
        if (last == UNKNOWN) {
            last = step - 1;
        }
    }

    /** Returns the record of an update; the steps since the one before it overflowed. */
    SwapCommit commit(long step, double clipFactor) {
        LongStream.range(last + 1, step).forEach(overflows::add);
        return new SwapCommit(step, clipFactor, last, skipped, overflows);
    }

    private boolean decays(Parameter parameter) {
        return settings.decayAll() || !parameter.spec().vector();
    }

    private AdamWStep step(long step, double clipFactor) {
        return new AdamWStep(
                step,
                settings.learningRate().at(step),
                settings.beta1(),
                settings.beta2(),
                settings.epsilon(),
                settings.weightDecay(),
                clipFactor);
    }

    /** Continues after an update of an earlier process, which it may have left unfinished. */
    void continueAfter(SwapCommit commit) {
        overflows.addAll(commit.overflows());
        renew(commit);
    }

    /**
     * Updates groups that are swapped, one after another, as far as they are not yet.
     *
     * @throws DeviceException if one is of another step
     */
    void renew(SwapCommit commit) {
        last = commit.step();
        AdamWStep step = step(commit.step() - commit.skipped(), commit.clipFactor());
        for (ParameterGroup group : parameters.groups()) {
            SwappedGroup files = requireNonNull(group.files());
            if (files.step() != commit.step()) {
                if (files.step() >= 0 && files.step() != commit.before()) {
                    throw new DeviceException(
                            "update of the state of %s to step %d: expected the state after step %d, got that after step %d; go on with --resume"
                                    .formatted(
                                            files.gradient().buffer().name(),
                                            commit.step(),
                                            commit.before(),
                                            files.step()));
                }
                List<Parameter> own =
                        parameters.all().stream().filter(p -> p.group().equals(group)).toList();
                files.renew(commit.step(), stretch -> update(own, stretch, step));
            }
        }
    }

    private void update(List<Parameter> own, SwappedGroup.Stretch stretch, AdamWStep step) {
        List<AdamWParameter> parts = new ArrayList<>();
        for (Parameter parameter : own) {
            if (parameter.isIn(stretch)) {
                parts.add(parameter.update(stretch, decays(parameter)));
            }
        }
        kernels.adamW(parts, step);
        kernels.finish();
    }
}
