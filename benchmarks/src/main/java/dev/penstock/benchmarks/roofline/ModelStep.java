package dev.penstock.benchmarks.roofline;

import java.util.List;

/**
 * A training step of a model: one stage on one GPU, products by cuBLAS, attention's heads of 64
 * columns.
 *
 * @param sequences of a micro-batch
 * @param block tokens of device.reduction-block
 * @param logitsBytes for logits that exist at the same time
 * @param joined whether cublasLt's products do what follows them: of bf16 alone
 */
public record ModelStep(
        Model model,
        int sequences,
        int microBatches,
        int block,
        long logitsBytes,
        boolean bf16,
        boolean joined) {
    /** What blocks consist of. */
    public enum Family {
        GPT2,
        LLAMA
    }

    /**
     * A model's sizes.
     *
     * @param keyHeads heads of keys, and of values, which queries share
     * @param hidden columns of the MLP's hidden layer
     * @param tied whether the head's matrix is the table of tokens
     */
    public record Model(
            Family family,
            int layers,
            int width,
            int heads,
            int keyHeads,
            int hidden,
            int context,
            int vocabulary,
            boolean tied) {
        /** Returns a GPT-2. */
        public static Model gpt2(int layers, int width, int heads, int context, int vocabulary) {
            return new Model(
                    Family.GPT2, layers, width, heads, heads, 4 * width, context, vocabulary, true);
        }

        boolean learnsPositions() {
            return family == Family.GPT2;
        }
    }

    public ModelStep {
        if (joined && !bf16) {
            throw new IllegalArgumentException("expected bf16 where products are joined");
        }
    }

    /** A step of one micro-batch with the settings that a run has by default. */
    public static ModelStep of(Model model, int sequences, boolean bf16, boolean joined) {
        return new ModelStep(model, sequences, 1, 128, 512L << 20, bf16, joined);
    }

    /** Returns the work of each kernel, the work of a name together. */
    public List<Work> works() {
        return StepWorks.of(this).all();
    }
}
