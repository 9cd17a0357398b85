package dev.penstock.benchmarks;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.config.reading.ConfigException;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Training steps of GPT-2's sizes in bf16 on the first GPU: tokens per second, and FLOP/s compared
 * with what one large matrix product reaches on the same device in the same run. Each size has as
 * many sequences per step as fit into the GPU's memory, up to 32; a size that does not fit at all
 * is reported. Below each size in one stage are PyTorch's figures for it, if {@code python3} has
 * PyTorch.
 *
 * <p>Arguments: names of rows, such as {@code 124m 355m/2 124m:16 124m:16:gemmex}, those with
 * {@code :16} with at most 16 sequences, those with {@code :gemmex} without cublasLt; without any,
 * all but {@code toy}. Settings such as {@code device.graphs=true} or {@code fine-tune.method=lora}
 * hold for all rows. {@code alone}: without PyTorch. {@code times}: how long each kernel takes in a
 * step of each row, which makes the steps longer.
 */
public final class GpuBenchmark {
    private static final int STEPS = 10;

    /** The share of the GPU's memory for what runs have planned; the rest is left to the driver. */
    private static final double USABLE = 0.92;

    private static final long MEASURED_NANOS = 1_000_000_000L;

    /**
     * A row of the table.
     *
     * @param stages all on the same GPU
     * @param way how products are computed: nothing, or {@link GpuKitPart#GEMMEX}
     */
    record Row(TrainingShape shape, int stages, int mostSequences, String way) {
        Row(TrainingShape shape, int stages, int mostSequences) {
            this(shape, stages, mostSequences, "");
        }

        String name() {
            return (stages == 1 ? shape.name() : shape.name() + "/" + stages) + way;
        }

        /**
         * @param sequences the sequences of a micro-batch
         * @param rankBytes the bytes that a rank may hold
         * @param settings more of them, which count if they come twice
         */
        TrainingMeasurement.Setup setup(int sequences, long rankBytes, List<String> settings) {
            List<String> all =
                    new ArrayList<>(
                            List.of(
                                    "pipeline.stages=" + stages,
                                    "device.kind=\"cuda:0\"",
                                    "device.precision=bf16",
                                    "device.memory-limit=" + rankBytes,
                                    // the host generates 1.5 billion weights
                                    "timeouts.start=15 minutes"));
            all.addAll(settings);
            int microBatches = stages == 1 ? 1 : 4 * stages;
            return new TrainingMeasurement.Setup(
                    name(), shape, STEPS, sequences * microBatches, microBatches, all);
        }
    }

    private static final TrainingShape TOY = new TrainingShape("toy", 2, 32, 2, 32, 64);
    private static final TrainingShape GPT2_124M =
            new TrainingShape("124m", 12, 768, 12, 1_024, 50_257);
    private static final TrainingShape GPT2_355M =
            new TrainingShape("355m", 24, 1_024, 16, 1_024, 50_257);

    private static final List<Row> ROWS =
            List.of(
                    new Row(GPT2_124M, 1, 32),
                    new Row(GPT2_355M, 1, 32),
                    new Row(new TrainingShape("774m", 36, 1_280, 20, 1_024, 50_257), 1, 32),
                    new Row(new TrainingShape("1.5b", 48, 1_600, 25, 1_024, 50_257), 1, 32),
                    new Row(GPT2_355M, 2, 8),
                    new Row(GPT2_355M, 4, 8));

    private static final Row TOY_ROW = new Row(TOY, 1, 2);

    private static final String ALONE = "alone";
    private static final String TIMES = "times";
    private static final String TIMES_FILE = "penstock.gpu.times";

    /** {@code cpu} shows that the peer's part works where there is no GPU. */
    private static final String PEER_DEVICE = System.getProperty("penstock.peer-device", "cuda");

    private final PrintStream out;
    private final List<String> rows;
    private final List<String> settings;
    private final boolean alone;
    private final boolean times;
    private final List<String> results = new ArrayList<>();

    private GpuBenchmark(PrintStream out, List<String> arguments) {
        this.out = out;
        this.settings = arguments.stream().filter(each -> each.contains("=")).toList();
        this.rows =
                arguments.stream()
                        .filter(each -> !each.contains("="))
                        .filter(each -> !List.of(ALONE, TIMES).contains(each))
                        .toList();
        this.alone = arguments.contains(ALONE);
        this.times = arguments.contains(TIMES);
    }

    public static void main(String[] arguments) {
        switch (Devices.probeGpus()) {
            case Gpus.None(String reason) -> {
                System.err.println("cannot measure: " + reason);
                System.exit(2);
            }
            case Gpus.Found(var gpus) -> {
                var benchmark = new GpuBenchmark(System.out, Arrays.asList(arguments));
                GpuKitPart.run(
                        "measure",
                        () -> {
                            if (!benchmark.run(gpus.getFirst())) {
                                System.exit(1);
                            }
                        });
            }
        }
    }

    /** Returns whether any row ran. */
    private boolean run(Gpus.Gpu gpu) {
        boolean toy = !wanted(TOY_ROW).isEmpty() && !rows.isEmpty();
        double peak = productFlops(toy ? 128 : 8_192);
        print(
                "%s, %.1f GiB, compute capability %s; best matrix product in bf16: %.1f"
                        + " TFLOP/s%n%n",
                gpu.name(),
                gpu.memoryBytes() / (double) (1L << 30),
                gpu.computeCapability(),
                peak / 1e12);
        print(
                "%-12s %10s %12s %10s %10s %11s %8s %10s%n",
                "size/st.",
                "sequences",
                "tokens/s",
                "step ms",
                "TFLOP/s",
                "of product",
                "bubble",
                "memory GiB");
        long usable = (long) (USABLE * gpu.memoryBytes());
        boolean any = false;
        String peer = alone ? "" : peer();
        for (Row known : toy ? List.of(TOY_ROW) : ROWS) {
            for (Row row : wanted(known)) {
                Optional<TrainingMeasurement> found = row(row, usable, peak);
                any |= found.isPresent();
                if (!peer.isEmpty() && row.stages() == 1) {
                    found.ifPresent(ours -> peerRow(row, ours, peak));
                }
            }
        }
        print(
                """

                sequences: per step, of %s tokens; TFLOP/s: floating-point operations of the model; of product: their share of
                the best product above; several stages: all on this GPU; memory: of the rank that holds most
                """,
                toy ? "32" : "1,024");
        if (!peer.isEmpty()) {
            print(
                    "PyTorch: %s, compiled, fused attention and AdamW, bf16; x: Penstock's tokens/s over its%n",
                    peer);
        }
        if (any) {
            GpuKitPart.result(String.join("; ", results));
        }
        return any;
    }

    /** Once for each time that the arguments name the row. */
    private List<Row> wanted(Row known) {
        if (rows.isEmpty()) {
            return List.of(known);
        }
        var pattern =
                Pattern.compile(
                        Pattern.quote(known.name()) + "(:\\d+)?(" + GpuKitPart.GEMMEX + ")?");
        return rows.stream()
                .map(pattern::matcher)
                .filter(Matcher::matches)
                .map(
                        each ->
                                new Row(
                                        known.shape(),
                                        known.stages(),
                                        each.group(1) == null
                                                ? known.mostSequences()
                                                : Integer.parseInt(each.group(1).substring(1)),
                                        each.group(2) == null ? "" : GpuKitPart.GEMMEX))
                .toList();
    }

    /** Returns PyTorch's version; empty, after printing why, if there is none to compare with. */
    private String peer() {
        try {
            return PyTorchPeer.version(PEER_DEVICE);
        } catch (PyTorchPeer.Missing e) {
            print("(no PyTorch figures: %s)%n", "" + e.getMessage());
            return "";
        }
    }

    private void peerRow(Row row, TrainingMeasurement ours, double peak) {
        try {
            PyTorchPeer.Measured found =
                    PyTorchPeer.measure(PEER_DEVICE, true, row.shape(), row.mostSequences(), STEPS);
            double rate = found.sequences() * row.shape().context() / found.stepSeconds();
            double flops = rate / ours.tokensPerSecond() * ours.flopsPerSecond();
            print(
                    "%-12s %10d %12.0f %10.1f %10.1f %10.0f%% %7.2fx %10.1f%n",
                    "  PyTorch",
                    found.sequences(),
                    rate,
                    1e3 * found.stepSeconds(),
                    flops / 1e12,
                    100 * flops / peak,
                    ours.tokensPerSecond() / rate,
                    found.peakBytes() / (double) (1L << 30));
            results.add(
                    String.format(
                            Locale.ROOT,
                            "PyTorch %.1f ms, %.0f tokens/s",
                            1e3 * found.stepSeconds(),
                            rate));
        } catch (PyTorchPeer.Missing e) {
            print("%-12s does not run: %s%n", "  PyTorch", "" + e.getMessage());
        }
    }

    /** Prints a row and returns what was measured; empty if it does not run. */
    private Optional<TrainingMeasurement> row(Row row, long usable, double peak) {
        String reason = "";
        for (int sequences = row.mostSequences(); sequences >= 1; sequences /= 2) {
            try {
                TrainingMeasurement.Setup setup =
                        row.setup(sequences, usable / row.stages(), settings);
                TrainingMeasurement found =
                        times ? timed(setup) : GpuKitPart.measure(setup.name(), setup);
                print(
                        "%-12s %10d %12.0f %10.1f %10.1f %10.0f%% %7.1f%% %10.1f%n",
                        row.name(),
                        setup.sequences(),
                        found.tokensPerSecond(),
                        1e3 * found.stepSeconds(),
                        found.flopsPerSecond() / 1e12,
                        100 * found.flopsPerSecond() / peak,
                        100 * found.bubble(),
                        found.peakBytes() / (double) (1L << 30));
                results.add(
                        String.format(
                                Locale.ROOT,
                                "%s with %d sequences %.1f ms, %.0f tokens/s, %.0f%% of the product",
                                row.name(),
                                setup.sequences(),
                                1e3 * found.stepSeconds(),
                                found.tokensPerSecond(),
                                100 * found.flopsPerSecond() / peak));
                return Optional.of(found);
            } catch (ConfigException | DeviceException | IllegalStateException e) {
                reason = GpuKitPart.firstLine(e);
                if (!wantsMemory(reason)) {
                    break;
                }
            }
        }
        print("cannot run %s: %s%n", row.name(), reason);
        return Optional.empty();
    }

    /** Whether fewer sequences may do better; a GPU that failed is not asked again. */
    static boolean wantsMemory(String reason) {
        boolean isOfMemory = reason.contains("memory") || reason.contains("bytes left");
        return isOfMemory && !reason.contains("the driver answers");
    }

    /** Prints what the GPU did in a step, the longest first; all steps are counted. */
    private TrainingMeasurement timed(TrainingMeasurement.Setup setup) {
        try {
            Path file = Files.createTempFile("penstock-kernels", ".tsv");
            System.setProperty(TIMES_FILE, file.toString());
            try {
                TrainingMeasurement found = GpuKitPart.measure(setup.name(), setup);
                print("%n%-48s %10s %10s%n", "in a step", "launches", "ms");
                double sum = 0;
                for (String line : Files.readAllLines(file)) {
                    String[] parts = line.split("\t", -1);
                    double millis = Double.parseDouble(parts[2]) / STEPS;
                    sum += millis;
                    print(
                            "%-48s %10.1f %10.3f%n",
                            parts[0], Double.parseDouble(parts[1]) / STEPS, millis);
                }
                print("%-48s %10s %10.3f%n%n", "all", "", sum);
                return found;
            } finally {
                System.clearProperty(TIMES_FILE);
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void print(String format, Object... values) {
        out.printf(Locale.ROOT, format, values);
        out.flush();
    }

    /**
     * Fills a factor with numbers without a pattern: products of zeros take less power and run
     * faster.
     */
    private static void fill(Tensor factor, long seed) {
        short[] numbers = new short[Math.toIntExact(factor.elements())];
        var random = new SplittableRandom(seed);
        for (int i = 0; i < numbers.length; i++) {
            int bits = Float.floatToRawIntBits((float) random.nextDouble(-1, 1));
            numbers[i] = (short) (bits >> 16);
        }
        factor.write(MemorySegment.ofArray(numbers));
    }

    /** Returns the FLOP/s of a square product of bf16 factors with F32 sums. */
    private static double productFlops(int n) {
        DeviceSettings gpu = DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(0);
        try (Device device = Devices.open(gpu)) {
            Tensor a = device.memory().tensor("a", DType.BF16, n, n);
            Tensor b = device.memory().tensor("b", DType.BF16, n, n);
            Tensor c = device.memory().tensor("c", DType.F32, n, n);
            fill(a, 1);
            fill(b, 2);
            Kernels kernels = device.kernels();
            kernels.gemm(DType.BF16, false, a, false, b, c, false);
            kernels.finish();
            int products = 0;
            long start = System.nanoTime();
            long nanos = 0;
            while (nanos < MEASURED_NANOS) {
                for (int i = 0; i < 4; i++) {
                    kernels.gemm(DType.BF16, false, a, false, b, c, false);
                }
                products += 4;
                kernels.finish();
                nanos = System.nanoTime() - start;
            }
            return 2.0 * n * n * n * products / (nanos * 1e-9);
        }
    }
}
