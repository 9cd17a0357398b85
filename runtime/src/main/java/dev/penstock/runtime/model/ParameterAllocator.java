package dev.penstock.runtime.model;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayList;
import java.util.List;

/** Gives parameters their memory, in the order in which they are asked for. */
final class ParameterAllocator {
    private final StageScopes scopes;
    private final Precision precision;
    private final boolean training;
    private final List<Parameter> allocated = new ArrayList<>();

    /**
     * @param training whether gradients and moments are wanted
     */
    ParameterAllocator(StageScopes scopes, Precision precision, boolean training) {
        this.scopes = scopes;
        this.precision = precision;
        this.training = training;
    }

    Parameter allocate(ParameterSpec spec) {
        Tensor weight = tensor(scopes.parameters(), spec.name(), DType.F32, spec);
        Tensor factor =
                spec.factor() && precision == Precision.BF16
                        ? tensor(scopes.parameters(), "bf16." + spec.name(), DType.BF16, spec)
                        : weight;
        Parameter parameter = new Parameter(spec, weight, factor, training ? training(spec) : null);
        allocated.add(parameter);
        return parameter;
    }

    private Parameter.Training training(ParameterSpec spec) {
        return new Parameter.Training(
                secondGradient(spec),
                tensor(scopes.optimizer(), "optimizer.m." + spec.name(), DType.F32, spec),
                tensor(scopes.optimizer(), "optimizer.v." + spec.name(), DType.F32, spec));
    }

    /** A gradient buffer beyond the parameter's own. */
    Tensor secondGradient(ParameterSpec spec) {
        return tensor(scopes.gradients(), "gradient of " + spec.name(), DType.F32, spec);
    }

    boolean training() {
        return training;
    }

    /** All parameters so far. */
    List<Parameter> allocated() {
        return List.copyOf(allocated);
    }

    private static Tensor tensor(DeviceScope scope, String name, DType type, ParameterSpec spec) {
        return scope.tensor(name, type, spec.rows(), spec.columns());
    }
}
