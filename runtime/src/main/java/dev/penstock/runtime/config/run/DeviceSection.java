package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.config.reading.Worded;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.SwapSettings;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Section {@code device}: what computes.
 *
 * @param threads threads of each rank; empty: the machine's cores shared among its ranks
 * @param reductionBlock tokens of a block of summation; slices whose edges fall on it give the bits
 *     of whole sequences
 * @param memoryLimit most bytes a rank may hold; empty: no limit
 * @param swap where everything that a rank holds of the model lies while it is not in memory;
 *     empty: it is in memory throughout
 * @param swapCache whether what is swapped may stay in memory that nothing else needs
 * @param swapIntensity decides how layers are cut where a rank swaps, and nothing else
 * @param offload a folder for activations that leave the device; empty: the host's memory
 * @param offloadIntensity decides which activations leave the device where that is to be chosen,
 *     and nothing else
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
        @Setting(
                        is = "float32",
                        doc =
                                "precision in which factors of products are multiplied, and of the"
                                        + " matrices' copies; fp16, on CPUs, is also how activations"
                                        + " travel, and wants optimizer.loss-scale")
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
                        is = "none",
                        word = "none",
                        output = true,
                        doc =
                                "a folder for parameters, gradients and optimizer state, of which a"
                                        + " stage at a time and the next one are in memory; needs"
                                        + " pipeline.stages = 1 and several pipeline.chunks")
                Optional<Path> swap,
        @Setting(
                        is = "keep",
                        doc =
                                "with device.swap: whether the page cache keeps what it has room"
                                        + " for of the files, or drops all pages that are done"
                                        + " with (Linux)")
                SwapCache swapCache,
        @Setting(
                        is = "" + DeviceSection.SWAP_INTENSITY,
                        range = "[1, )",
                        doc =
                                "with device.swap: floating-point operations that take a rank as"
                                        + " long as loading a byte; cuts the stages so that loads"
                                        + " hide behind computing")
                int swapIntensity,
        @Setting(
                        is = "host",
                        word = "host",
                        output = true,
                        doc =
                                "where activations go that leave the device: the host's memory, or"
                                        + " files in a folder")
                Optional<Path> offload,
        @Setting(
                        is = "" + DeviceSection.OFFLOAD_INTENSITY,
                        range = "[1, )",
                        doc =
                                "with schedule.activations = fit: floating-point operations that"
                                        + " take a rank as long as moving a byte to the host; for a"
                                        + " folder device.swap-intensity counts where that is more")
                int offloadIntensity,
        @Setting(is = "false", doc = "GPUs are given work that comes again as CUDA graphs")
                boolean graphs) {
    /** Tokens of a block of summation, unless another number is given. */
    public static final int REDUCTION_BLOCK = 128;

    /** Two slow cores beside a disk of a gigabyte a second. */
    public static final int SWAP_INTENSITY = 50;

    /** A copy of 4 GB/s beside a rank of 100 GFLOP/s. */
    public static final int OFFLOAD_INTENSITY = 25;

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
        BF16,
        FP16
    }

    /** What the operating system's page cache does with files in which a rank swaps. */
    public enum SwapCache {
        KEEP,
        DROP
    }

    /** Returns where a rank swaps; empty where all of it stays in memory. */
    Optional<SwapSettings> swapSettings() {
        return swap.map(folder -> new SwapSettings(folder, swapCache == SwapCache.DROP));
    }

    /** Returns what a configuration has with which nothing can be swapped. */
    List<Conflict> swapConflicts(RunConfig config) {
        List<Conflict> conflicts = new ArrayList<>();
        if (swap.isEmpty()) {
            return conflicts;
        }
        ParallelSection parallel = config.parallel();
        if (kind.isCuda()) {
            conflicts.add(
                    conflict(
                            "none where device.kind = " + kind.word(),
                            "try device.kind = cpu",
                            "device.kind"));
        }
        if (config.pipeline().stages() > 1 || parallel.tensor() > 1 || parallel.context() > 1) {
            conflicts.add(
                    conflict(
                            "none where several ranks share a replica: one rank alone runs all of the model",
                            "set pipeline.stages, parallel.tensor and parallel.context to 1; stages on a rank are pipeline.chunks",
                            "pipeline.stages",
                            "parallel.tensor",
                            "parallel.context"));
        }
        if (config.chunks() < 2) {
            conflicts.add(
                    conflict(
                            "none where the model is one stage: a stage at a time is in memory",
                            "try schedule.kind = breadth-first and pipeline.chunks = %d"
                                    .formatted(Math.max(2, config.model().layers().count())),
                            "pipeline.chunks",
                            "schedule.kind"));
        }
        if (parallel.zeroStage() > 0 || parallel.zeroOffload().isPresent()) {
            conflicts.add(
                    conflict(
                            "none where replicas divide state (parallel.zero): each swaps all of it",
                            "leave parallel.zero out",
                            "parallel.zero.stage",
                            "parallel.zero.offload"));
        }
        if (config.schedule().isWiredKind() || config.adapts()) {
            conflicts.add(
                    conflict(
                            "none where the plan changes or replicas do each other's micro-batches",
                            "try schedule.kind = breadth-first",
                            "schedule.kind",
                            "schedule.candidates",
                            "pipeline.partition"));
        }
        if (config.recovery().mirror()) {
            conflicts.add(
                    conflict(
                            "none where others mirror what a rank holds (recovery.mirror)",
                            "leave recovery.mirror out: a run that was killed goes on with --resume",
                            "recovery.mirror"));
        }
        if (config.optimizer().gradientSum() != GradientSum.FLOAT32) {
            conflicts.add(
                    conflict(
                            "none where gradients are summed exactly: the sums would stay in memory",
                            "leave optimizer.gradient-sum out",
                            "optimizer.gradient-sum"));
        }
        if (config.fineTune().method() != FineTuneSection.Method.FULL
                || !config.fineTune().freeze().isEmpty()) {
            conflicts.add(
                    conflict(
                            "none where only some of the model is trained",
                            "train all of it, or leave device.swap out",
                            "fine-tune.method",
                            "fine-tune.freeze"));
        }
        return conflicts;
    }

    private Conflict conflict(String expected, String advice, String... others) {
        return new Conflict(
                Stream.concat(Stream.of("device.swap"), Stream.of(others)).toList(),
                expected,
                swap.map(Path::toString).orElse("none"),
                advice);
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
