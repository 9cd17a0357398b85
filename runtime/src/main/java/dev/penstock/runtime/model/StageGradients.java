package dev.penstock.runtime.model;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The gradients of a stage between its last backward and the next step. A tied matrix has a part
 * from the embedding and one from the head: two stages exchange them, a single stage adds them
 * here.
 */
final class StageGradients {
    private final Kernels kernels;
    private final List<Parameter> parameters;
    private final List<Parameter> counted;
    private final List<SharedGradient> shared;
    private final @Nullable Parameter tiedHere;
    private final @Nullable Tensor headPart;
    private boolean used;

    StageGradients(
            Kernels kernels, StageParameters parameters, GptSettings settings, StageRole role) {
        this.kernels = kernels;
        this.parameters = parameters.all();
        counted = parameters.counted();
        Parameter table = settings.shape().tied() ? parameters.tokenTable() : null;
        StageParameters.Head head = parameters.head();
        boolean alone = role.first() && role.last();
        tiedHere = alone ? table : null;
        headPart = alone && table != null && head != null ? head.matrixGradient() : null;
        shared =
                alone || table == null
                        ? List.of()
                        : List.of(sharedBetween(settings.partition().stages(), table));
    }

    private static SharedGradient sharedBetween(int stages, Parameter parameter) {
        return new SharedGradient(parameter.name(), List.of(0, stages - 1), parameter.gradient());
    }

    List<SharedGradient> shared() {
        return shared;
    }

    /** Before a step's backwards: zeroes what a step that was abandoned left behind. */
    void begin() {
        if (used) {
            parameters.forEach(p -> kernels.zero(p.gradient()));
            zeroHeadPart();
        }
        used = true;
    }

    /** Somebody else put gradients here: they are the optimizer's, or the next step zeroes them. */
    void given() {
        used = true;
    }

    /** After a step's backwards: the embedding's part plus the head's. */
    void complete() {
        if (tiedHere != null && headPart != null) {
            kernels.add(headPart, tiedHere.gradient());
        }
    }

    /** After the optimizer, which zeroes the gradients that it used. */
    void end() {
        zeroHeadPart();
        used = false;
    }

    private void zeroHeadPart() {
        if (headPart != null) {
            kernels.zero(headPart);
        }
    }

    List<TensorNorm> norms() {
        return counted.stream()
                .map(p -> new TensorNorm(p.name(), kernels.squaredNorm(p.gradient())))
                .toList();
    }

    List<NamedTensor> tensors() {
        return counted.stream().map(p -> p.named(p.name(), p.gradient())).toList();
    }
}
