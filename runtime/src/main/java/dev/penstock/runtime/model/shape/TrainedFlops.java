package dev.penstock.runtime.model.shape;

/**
 * FLOPs per token of the parts of a model of which not everything is trained: of three equal thirds
 * of each product (forward, backward for the input, backward for the weights), those that are
 * computed. Attention has no weights, and twice as much backward as forward.
 *
 * <pre>
 *   block        0      1      2        3        head
 *   trained      no     no     yes      no       no
 *   computed     F      F      F W      F I      F I
 * </pre>
 *
 * Of block 2 the backward for the input ends at the lowest layer that is trained in it.
 */
final class TrainedFlops {
    private final TrainedParts parts;

    /** Entry l: of the blocks before l. */
    private final long[] before;

    private final long embedding;
    private final long head;

    TrainedFlops(TrainedParts parts) {
        this.parts = parts;
        ModelShape shape = parts.shape();
        before = new long[shape.layers() + 1];
        boolean trainedBelow = parts.embedding();
        for (int layer = 0; layer < shape.layers(); layer++) {
            before[layer + 1] = before[layer] + block(layer, trainedBelow);
            trainedBelow |= parts.block(layer);
        }
        // a frozen table is looked up in, and adds no gradients
        embedding = shape.embeddingFlopsPerToken() / (parts.embedding() ? 1 : 2);
        long product = shape.headFlopsPerToken() / 3;
        head =
                product
                        + (trainedBelow || parts.head() ? product : 0)
                        + (parts.headMatrix() ? product : 0);
    }

    private long block(int layer, boolean trainedBelow) {
        ModelShape shape = parts.shape();
        BlockDesign block = shape.block();
        long width = shape.width();
        HeadDesign heads = block.heads(layer);
        long outputs = heads.outputColumns();
        long attention = shape.layerFlopsPerToken(layer) - 6 * shape.layerMatrixParameters(layer);
        boolean toAttention = trainedBelow || parts.attention(layer);
        boolean toMlp = toAttention || parts.mlp(layer);
        boolean intoAttention = trainedBelow || parts.firstNorm(layer);
        boolean intoMlp = toAttention || parts.secondNorm(layer);
        return linear(layer, "attn.c_attn", width, heads.columns(), intoAttention)
                + attention / 3
                + (toAttention ? attention - attention / 3 : 0)
                + linear(layer, "attn.c_proj", outputs, width, toAttention)
                + linear(layer, "mlp.c_fc", width, block.hiddenColumns(), intoMlp)
                + linear(layer, "mlp.c_proj", block.hidden(), width, toMlp);
    }

    /**
     * Of a linear layer with its adapters. Within those that are trained, the gradient of what lies
     * between their two matrices is computed in any case.
     *
     * @param input whether the gradient of its input is computed
     */
    private long linear(int layer, String name, long in, long out, boolean input) {
        FineTuning tuning = parts.tuning();
        boolean trained = tuning.trains("h." + layer + "." + name + ".weight");
        long flops = 2 * in * out * (1 + (input ? 1 : 0) + (trained ? 1 : 0));
        for (AdapterPlace place : tuning.beside(name)) {
            long rank = tuning.adapters().map(Adapters::rank).orElse(0);
            boolean learns = tuning.trains(place.inner(layer)) || tuning.trains(place.outer(layer));
            flops += 2 * rank * (in + place.columns()) * (learns ? 3 : input ? 2 : 1);
        }
        return flops;
    }

    /** Returns those of contiguous blocks, forward and backward. */
    long perToken(int firstLayer, int layers) {
        return before[firstLayer + layers] - before[firstLayer];
    }

    long embedding() {
        return embedding;
    }

    long head() {
        return head;
    }
}
