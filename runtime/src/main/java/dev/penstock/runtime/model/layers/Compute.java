package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.StageParameters;
import org.jspecify.annotations.Nullable;

/**
 * The means with which every layer computes.
 *
 * @param multiply type in which factors of matrix products are multiplied
 * @param kept type of activations and gradients that only products read
 * @param shards the ranks that compute the same layers with other parts of their parameters
 * @param adapters scratch of low-rank branches; null if there are none
 * @param widened scratch for a frozen matrix in F32, where it is kept in BF16 and products read
 *     F32; null where there is none
 * @param projected scratch for queries, keys and values of the largest unit before they are
 *     rounded; null where they are kept in F32
 * @param dropout of what enters the residual stream; null if nothing is ever dropped
 */
public record Compute(
        Kernels kernels,
        DType multiply,
        DType kept,
        FiniteGuard guard,
        TensorShards shards,
        @Nullable AdapterRoom adapters,
        @Nullable Tensor widened,
        @Nullable Tensor projected,
        @Nullable StreamDropout dropout) {

    /** The means of layers whose residual stream is never dropped out. */
    public Compute(
            Kernels kernels,
            DType multiply,
            DType kept,
            FiniteGuard guard,
            TensorShards shards,
            @Nullable AdapterRoom adapters,
            @Nullable Tensor widened,
            @Nullable Tensor projected) {
        this(kernels, multiply, kept, guard, shards, adapters, widened, projected, null);
    }

    /** Returns a matrix as products read it, valid until the next call. */
    Tensor factor(Parameter matrix) {
        Tensor factor = matrix.factor();
        if (factor.type() != DType.BF16 || multiply == DType.BF16) {
            return factor; // products read F32 and I8 as they are
        }
        Tensor room = requireNonNull(widened);
        Tensor wide =
                new Tensor(
                        room.buffer(),
                        room.offsetBytes(),
                        DType.F32,
                        factor.rows(),
                        factor.columns(),
                        factor.columns());
        kernels.copy(factor, wide);
        return wide;
    }

    /** Allocates room to widen matrices; null if there are none to widen. */
    public static @Nullable Tensor room(
            DeviceScope scope, DType multiply, StageParameters parameters) {
        long largest =
                parameters.all().stream()
                        .filter(each -> multiply == DType.F32 && each.group().isRounded())
                        .mapToLong(each -> each.spec().piece().elements())
                        .max()
                        .orElse(0);
        return largest == 0
                ? null
                : scope.tensor("widened matrix", DType.F32, 1, Math.toIntExact(largest));
    }

    /** Returns whether whatever only products read is rounded where it is computed. */
    boolean rounds() {
        return kept == DType.BF16;
    }

    /** Returns whether products can do what follows them, see {@link Kernels#gemmThen}. */
    boolean joins() {
        return rounds() && kernels.joinsProducts();
    }

    /**
     * Returns where something that only products read is kept in the memory of a dense F32 matrix
     * that is no longer used: the matrix itself, or half of it.
     */
    Tensor keptIn(Tensor matrix) {
        return rounds()
                ? new Tensor(
                        matrix.buffer(),
                        matrix.offsetBytes(),
                        kept,
                        matrix.rows(),
                        matrix.columns(),
                        matrix.columns())
                : matrix;
    }
}
