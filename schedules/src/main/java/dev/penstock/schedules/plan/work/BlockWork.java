package dev.penstock.schedules.plan.work;

/**
 * What one unit (micro-batch, slice) of work costs on one device of a rank, per block and for the
 * head. All in nanoseconds.
 *
 * <p>A matrix product of n tokens through w weights (12 h^2 in a GPT-2) takes 2 n w FLOPs,
 * attention of q columns to k tokens 4 n k q (causal: on average the context and half the slice,
 * within a window at most that); a backward is one such for the input and one for the weights,
 * attention's both for the input. It takes as long as these at the achieved rate or as reading the
 * weights and moving the activations, whichever is longer: that is the floor below which shorter
 * slices gain nothing. Two all-reduces each way join the tensor shards (Megatron-LM, arXiv
 * 1909.08053, section 3).
 *
 * @param forward of one block
 * @param backwardInput of one block, a recomputed forward included
 * @param backwardWeight of one block
 * @param head of the head's matrix: its product, and that for its input
 * @param headWeight the product for the head's matrix itself; 0 if it is not trained
 * @param embedding of looking a token up
 * @param embeddingWeight of adding its gradient; 0 if that is not trained
 * @param sums of one block's tensor shards, which are part of its forward, and again of its
 *     backward's first half; a recomputed forward's come on top of that
 */
public record BlockWork(
        long forward,
        long backwardInput,
        long backwardWeight,
        long head,
        long headWeight,
        long embedding,
        long embeddingWeight,
        long sums) {

    /**
     * Computes the work of a slice.
     *
     * @param tokens of the slice, in all sequences of the micro-batch
     * @param meanContext tokens that one token attends to, on average
     */
    public static BlockWork of(
            ModelShape model,
            TrainingBytes bytes,
            RankHardware hardware,
            int tensor,
            long tokens,
            double meanContext,
            boolean recompute) {
        double h = model.width();
        double weights = (double) model.blockMatrixParameters() / tensor;
        double adapters = (double) model.adapters() / tensor;
        double product = 2 * tokens * (weights + adapters);
        double trained = (double) model.productsOfBlock() / tensor;
        double attention = 4 * tokens * meanContext * model.queryColumns() / tensor;
        double moved = UnitBytes.kept(model, bytes, tensor, tokens);
        double reduced = tensor == 1 ? 0 : 2 * allReduce(hardware, tensor, bytes, tokens * h);
        double forward =
                longer(hardware, product + attention, weights * bytes.parameter() + moved)
                        + reduced;
        double input =
                longer(hardware, product + 2 * attention, weights * bytes.parameter() + moved)
                        + reduced;
        double weight =
                trained == 0
                        ? 0
                        : longer(
                                hardware, 2 * tokens * trained, trained * bytes.gradient() + moved);
        double matrix = (double) model.vocabulary() * h / tensor;
        long head = Math.round(longer(hardware, 2 * tokens * matrix, matrix * bytes.parameter()));
        long embedding =
                Math.round(1e9 * tokens * h * bytes.activation() / hardware.bytesPerSecond());
        return new BlockWork(
                Math.round(forward),
                Math.round(input) + (recompute ? Math.round(forward) : 0),
                Math.round(weight),
                head,
                model.trainsHead() ? head : 0,
                embedding,
                model.trainedOfEmbedding() > 0 ? embedding : 0,
                Math.round(reduced));
    }

    private static double longer(RankHardware hardware, double flops, double movedBytes) {
        return 1e9
                * Math.max(
                        flops / hardware.flopsPerSecond(), movedBytes / hardware.bytesPerSecond());
    }

    private static double allReduce(
            RankHardware hardware, int tensor, TrainingBytes bytes, double numbers) {
        return Collectives.allReduceNanos(
                hardware.tensorLink(), tensor, numbers * bytes.activation());
    }
}
