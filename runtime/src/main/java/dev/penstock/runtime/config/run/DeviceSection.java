package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.config.reading.Worded;

import java.nio.file.Path;
import java.util.Optional;

/**
 * Section {@code device}: what computes.
 *
 * @param threads threads of each rank; empty: the machine's cores shared among its ranks
 * @param reductionBlock tokens of a block of summation; slices whose edges fall on it give the bits
 *     of whole sequences
 * @param memoryLimit most bytes a rank may hold; empty: no limit
 * @param offload a folder for activations that leave the device; empty: the host's memory
 * @param graphs whether GPUs are given work that comes again as CUDA graphs, by one call each
 */
public record DeviceSection(
        @Setting(
                        is = "auto",
                        doc =
                                "auto (the cpu), cpu, cuda (GPUs in turn), \"cuda:1\", or reference"
                                        + " (plain scalar code: slow, for comparison)")
                DeviceKind kind,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, 1024]",
                        doc = "threads of each rank; auto: the cores shared among the ranks")
                Optional<Integer> threads,
        @Setting(
                        is = "auto",
                        doc =
                                "who multiplies matrices: oneDNN (with AVX-512) or our own Java on"
                                        + " CPUs, cuBLAS or our own kernels on GPUs")
                Gemm gemm,
        @Setting(is = "float32", doc = "precision of activations and gradients")
                Precision precision,
        @Setting(
                        is = "" + DeviceSection.REDUCTION_BLOCK,
                        range = "[1, )",
                        doc = "tokens of a block of summation; slices cut on it give equal bits")
                int reductionBlock,
        @Setting(is = "auto", doc = "width of vector instructions") VectorBits vectorBits,
        @Setting(
                        is = "none",
                        word = "none",
                        range = "[1 MiB, )",
                        doc = "most memory that a rank may hold")
                Optional<Bytes> memoryLimit,
        @Setting(
                        is = "host",
                        word = "host",
                        output = true,
                        doc =
                                "where activations go that leave the device: the host's memory, or"
                                        + " files in a folder")
                Optional<Path> offload,
        @Setting(is = "false", doc = "GPUs are given work that comes again as CUDA graphs")
                boolean graphs) {
    /** Tokens of a block of summation, unless another number is given. */
    public static final int REDUCTION_BLOCK = 128;

    /** Who multiplies matrices. */
    public enum Gemm {
        AUTO,
        ONEDNN,
        JAVA,
        CUBLAS,
        KERNELS;

        /** Whether a device of this kind has it. */
        boolean isOf(DeviceKind kind) {
            return switch (this) {
                case AUTO -> true;
                case ONEDNN, JAVA -> !kind.isCuda();
                case CUBLAS, KERNELS -> kind.isCuda();
            };
        }
    }

    /** Precision of activations and gradients; master weights are always float32. */
    public enum Precision {
        FLOAT32,
        BF16
    }

    /** Width of the CPU's vector instructions. */
    public enum VectorBits implements Worded {
        AUTO("auto", 0),
        BITS_512("512", 512),
        BITS_256("256", 256);

        private final String word;
        private final int bits;

        VectorBits(String word, int bits) {
            this.word = word;
            this.bits = bits;
        }

        @Override
        public String word() {
            return word;
        }

        /** The width, or 0 where the machine's widest is meant. */
        public int bits() {
            return bits;
        }
    }
}
