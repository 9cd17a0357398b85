package dev.penstock.runtime.model;

import dev.penstock.runtime.model.ParameterSpec.Initial;

/** The parameters of one transformer block. */
record LayerParameters(
        NormParameters norm1,
        LinearParameters queryKeyValue,
        LinearParameters attentionOutput,
        NormParameters norm2,
        LinearParameters hidden,
        LinearParameters mlpOutput) {

    /** Allocates the block {@code h.LAYER}. */
    static LayerParameters allocate(ParameterAllocator allocator, GptShape shape, int layer) {
        String h = "h." + layer + ".";
        int d = shape.width();
        int inner = shape.hidden();
        return new LayerParameters(
                norm(allocator, h + "ln_1", d),
                linear(allocator, h + "attn.c_attn", d, 3 * d, Initial.NORMAL),
                linear(allocator, h + "attn.c_proj", d, d, Initial.RESIDUAL),
                norm(allocator, h + "ln_2", d),
                linear(allocator, h + "mlp.c_fc", d, inner, Initial.NORMAL),
                linear(allocator, h + "mlp.c_proj", inner, d, Initial.RESIDUAL));
    }

    static NormParameters norm(ParameterAllocator allocator, String name, int width) {
        return new NormParameters(
                name,
                allocator.allocate(ParameterSpec.gain(name + ".weight", width)),
                allocator.allocate(ParameterSpec.bias(name + ".bias", width)));
    }

    private static LinearParameters linear(
            ParameterAllocator allocator, String name, int in, int out, Initial initial) {
        return new LinearParameters(
                allocator.allocate(ParameterSpec.matrix(name + ".weight", in, out, initial)),
                allocator.allocate(ParameterSpec.bias(name + ".bias", out)));
    }
}
