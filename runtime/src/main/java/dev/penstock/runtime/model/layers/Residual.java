package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.EncoderDesign;

/**
 * What a branch of a block is added to: the input of its norm, or, where sums are normalised, the
 * norm's output. All tensors are of own rows.
 */
record Residual(Kernels kernels, boolean ofNorm) {
    static Residual of(Kernels kernels, BlockDesign design) {
        EncoderDesign encoder = design.encoder();
        return new Residual(kernels, encoder != null && encoder.normsSums());
    }

    /** Returns what the branch is added to. */
    Tensor of(Tensor x, Tensor normed) {
        return ofNorm ? normed : x;
    }

    /**
     * Brings the gradient of the sum to where it goes on, before the norm's backward.
     *
     * @param dNorm gradient of the norm's output, so far that of the branch alone
     * @param dStream gradient of the sum on entry; what the norm's backward adds to on return
     */
    void backward(Tensor dNorm, Tensor dStream) {
        if (ofNorm) {
            kernels.add(dStream, dNorm);
            kernels.zero(dStream);
        }
    }
}
