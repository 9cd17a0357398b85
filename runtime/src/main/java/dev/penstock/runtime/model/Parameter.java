package dev.penstock.runtime.model;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.device.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A parameter in device memory. Vectors are matrices of one row.
 *
 * @param weight the F32 master
 * @param factor what matrix products read: a BF16 copy, or the master itself
 * @param training null where the model only runs forward
 */
record Parameter(ParameterSpec spec, Tensor weight, Tensor factor, @Nullable Training training) {

    /** What training adds to a parameter; all F32 in the weight's shape. */
    record Training(Tensor gradient, Tensor m, Tensor v) {}

    String name() {
        return spec.name();
    }

    Tensor gradient() {
        return trained().gradient();
    }

    Training trained() {
        if (training == null) {
            throw new IllegalStateException(name() + " was allocated for inference only");
        }
        return training;
    }

    /** Weight and moments under the names that files use. */
    List<NamedTensor> state() {
        return List.of(
                named(name(), weight),
                named("optimizer.m." + name(), trained().m()),
                named("optimizer.v." + name(), trained().v()));
    }

    NamedTensor named(String tensorName, Tensor tensor) {
        return new NamedTensor(tensorName, spec.piece(), tensor);
    }

    /** Whether the factor is a copy that must follow the master. */
    boolean hasCopy() {
        return factor != weight;
    }
}
