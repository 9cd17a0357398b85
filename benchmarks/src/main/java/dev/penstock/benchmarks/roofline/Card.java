package dev.penstock.benchmarks.roofline;

import java.util.List;

/**
 * A GPU's limits by its data sheet (dense products, no sparsity): NVIDIA H100 and H200 Tensor Core
 * GPU data sheets, SXM; NVIDIA A100 80 GB data sheet, SXM.
 *
 * @param bytesPerSecond of its memory
 * @param halfFlops FLOP/s of bf16 products with F32 sums on tensor cores
 * @param floatFlops FLOP/s of F32 outside tensor cores
 */
public record Card(String name, double bytesPerSecond, double halfFlops, double floatFlops) {
    public static final Card H100 = new Card("H100", 3.35e12, 989e12, 67e12);
    public static final Card H200 = new Card("H200", 4.8e12, 989e12, 67e12);
    public static final Card A100 = new Card("A100", 2.039e12, 312e12, 19.5e12);
    public static final List<Card> ALL = List.of(H100, H200, A100);

    /** Between a kernel's end and the next one's full speed. */
    private static final double LAUNCH_SECONDS = 1.5e-6;

    /** GELU, norms, losses, biases, AdamW and the rest of that step: 14.4 ms for 47 GB. */
    private static final double SHARE_OF_MEMORY = 0.61;

    /**
     * No faster than this: every byte at the memory's full rate, or every operation at the cores'.
     */
    public double leastSeconds(Work work, boolean bf16) {
        return Math.max(
                work.bytes() / bytesPerSecond, work.operations() / (bf16 ? halfFlops : floatFlops));
    }

    /**
     * As long as kernels of this kind take if they come as near to this card's limits as to those
     * of the H200 on which a step of GPT-2 124M was measured.
     */
    public double seconds(Work work, boolean bf16) {
        double memory = work.bytes() / bytesPerSecond / SHARE_OF_MEMORY;
        double cores = work.operations() / (bf16 ? halfFlops : floatFlops);
        return Math.max(memory, cores / share(work.kind(), bf16))
                + LAUNCH_SECONDS * work.launches();
    }

    /** Of the cores. Of F32 nothing was measured kernel by kernel: what simple kernels reach. */
    private static double share(Work.Kind kind, boolean bf16) {
        return switch (kind) {
            case ELEMENTS -> 1;
            case PRODUCTS -> bf16 ? 0.52 : 0.75;
            case HEAD_PRODUCTS -> bf16 ? 0.42 : 0.75;
            case ATTENTION -> bf16 ? 0.185 : 0.25;
            case ATTENTION_BACKWARD -> bf16 ? 0.196 : 0.25;
        };
    }
}
