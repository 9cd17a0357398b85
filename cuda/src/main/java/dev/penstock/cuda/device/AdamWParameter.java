package dev.penstock.cuda.device;

import org.jspecify.annotations.Nullable;

/**
 * What an AdamW update reads and writes of one parameter: dense F32 tensors of one shape, or
 * moments in 8 bits as {@link Kernels#adamW(Tensor, Tensor, Tensor, Tensor, AdamWStep)} has them.
 *
 * @param rounded BF16, or F16 where the host computes, as {@code weight}: receives the new weight;
 *     null if nothing wants it so
 * @param decays whether the step's decay is for it
 */
public record AdamWParameter(
        Tensor weight,
        Tensor gradient,
        Tensor m,
        Tensor v,
        @Nullable Tensor rounded,
        boolean decays) {}
