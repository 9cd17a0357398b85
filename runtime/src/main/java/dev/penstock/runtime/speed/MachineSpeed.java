package dev.penstock.runtime.speed;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.speed.SpeedEstimate.Sample;
import dev.penstock.runtime.speed.SpeedReport.Missing;
import dev.penstock.runtime.speed.SpeedReport.Product;
import dev.penstock.runtime.starter.Machine;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.TrainingBytes;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Measures this machine, part after part, each within a limit of time. A part that fails or does
 * not end is named in the report, and the others go on.
 */
public final class MachineSpeed {
    private static final List<DType> PRECISIONS = List.of(DType.F32, DType.BF16);
    private static final int ROUNDS = 3;
    private static final int SMALL_BYTES = 4 << 10;

    /** Stages of the samples; a GPU is not divided. */
    private static final int STAGES = 2;

    private final DeviceSettings device;
    private final Path runs;
    private final long nanosPerFigure;
    private final long limitSeconds;
    private final Consumer<String> progress;

    private final List<Product> products = new ArrayList<>();
    private final List<Missing> missing = new ArrayList<>();
    private String name = "";

    /**
     * @param runs folder whose disk is measured
     * @param nanosPerFigure about how long a figure is measured
     * @param limitSeconds most time of a part
     * @param progress takes a line when a part ends
     */
    public MachineSpeed(
            DeviceSettings device,
            Path runs,
            long nanosPerFigure,
            long limitSeconds,
            Consumer<String> progress) {
        this.device = device;
        this.runs = runs;
        this.nanosPerFigure = nanosPerFigure;
        this.limitSeconds = limitSeconds;
        this.progress = progress;
    }

    /** The device that a run with this kind opens, with all cores. */
    public static DeviceSettings settings(DeviceKind kind) {
        DeviceSettings.Kind opened = DeviceSettings.Kind.AUTO;
        if (kind.isCuda()) {
            opened = DeviceSettings.Kind.CUDA;
        } else if (kind.equals(DeviceKind.REFERENCE)) {
            opened = DeviceSettings.Kind.REFERENCE;
        } else if (kind.equals(DeviceKind.CPU)) {
            opened = DeviceSettings.Kind.CPU;
        }
        return DeviceSettings.DEFAULTS.withKind(opened).withGpu(kind.gpu().orElse(0));
    }

    /**
     * Measures all parts.
     *
     * @throws DeviceException if there is no such device
     */
    public SpeedReport measure() {
        Devices.open(device).close();
        for (Sample sample : Sample.values()) {
            part("products of " + sample.title(), () -> productsOf(sample))
                    .ifPresent(products::addAll);
        }
        Optional<Double> memory = part("memory", this::copyRate);
        List<LinkRate> links = part("links", this::linkRates).orElse(List.of());
        Optional<DiskRate> disk = part("disk", () -> DiskRate.of(runs, nanosPerFigure * 2));
        List<SpeedEstimate> estimates =
                memory.isPresent() && !links.isEmpty() ? estimates(memory.get(), links) : List.of();
        return new SpeedReport(name, products, memory.orElse(0.0), links, disk, estimates, missing);
    }

    /** Runs a part in a thread of its own, as nothing stops a call that waits for a disk. */
    private <T> Optional<T> part(String title, Callable<T> work) {
        long start = System.nanoTime();
        var task = new FutureTask<T>(work);
        Thread.ofPlatform().daemon().name("speed " + title).start(task);
        @Nullable String reason = null;
        Optional<T> found = Optional.empty();
        try {
            found = Optional.of(task.get(limitSeconds, TimeUnit.SECONDS));
        } catch (TimeoutException e) {
            reason = "not measured within %d s".formatted(limitSeconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            reason = "interrupted";
        } catch (ExecutionException e) {
            reason = told(e.getCause());
        }
        if (reason != null) {
            missing.add(new Missing(title, reason));
        }
        progress.accept(
                String.format(
                        Locale.ROOT,
                        "%s: %s",
                        title,
                        reason != null
                                ? reason
                                : "%.1f s".formatted((System.nanoTime() - start) / 1e9)));
        return found;
    }

    private static String told(@Nullable Throwable cause) {
        return switch (cause) {
            case IOException e -> String.valueOf(e.getMessage());
            case DataPlaneException e -> String.valueOf(e.getMessage());
            case DeviceException e -> String.valueOf(e.getMessage());
            case null -> throw new IllegalStateException("a failure without a cause");
            default -> throw new IllegalStateException("a part of the measurement failed", cause);
        };
    }

    /** Round after round, the best of each: Java compiles its code while the first ones run. */
    private List<Product> productsOf(Sample sample) {
        int rows = sample.model().context();
        int width = sample.model().width();
        Map<DType, Double> best = new EnumMap<>(DType.class);
        try (Device opened = Devices.open(device)) {
            name = opened.name();
            var rates = new DeviceRates(opened, nanosPerFigure / ROUNDS, 1);
            for (int round = 0; round < ROUNDS; round++) {
                for (DType precision : PRECISIONS) {
                    best.merge(
                            precision,
                            rates.productFlops(precision, rows, width, 4 * width),
                            Math::max);
                }
            }
        }
        String size = "%d x %d x %d".formatted(rows, width, 4 * width);
        return PRECISIONS.stream()
                .map(
                        precision ->
                                new Product(
                                        sample.title(),
                                        word(precision),
                                        size,
                                        best.getOrDefault(precision, 0.0)))
                .toList();
    }

    private static String word(DType precision) {
        return precision == DType.F32 ? "float32" : "bf16";
    }

    private double copyRate() {
        try (Device opened = Devices.open(device)) {
            return new DeviceRates(opened, nanosPerFigure, 1).copyBytes();
        }
    }

    private List<LinkRate> linkRates() {
        List<Integer> sizes = new ArrayList<>(List.of(SMALL_BYTES));
        Arrays.stream(Sample.values()).map(Sample::boundaryBytes).forEach(sizes::add);
        return LinkRate.of(sizes, nanosPerFigure);
    }

    private List<SpeedEstimate> estimates(double memory, List<LinkRate> links) {
        List<SpeedEstimate> estimates = new ArrayList<>();
        for (Sample sample : Sample.values()) {
            LinkRate link =
                    links.stream()
                            .filter(rate -> rate.bytes() == sample.boundaryBytes())
                            .findFirst()
                            .orElseThrow();
            for (Product product : products) {
                if (product.model().equals(sample.title())) {
                    boolean whole = product.precision().equals("float32");
                    Hardware hardware =
                            SpeedEstimate.hardware(
                                    stages(),
                                    memoryBytes(),
                                    product.flopsPerSecond(),
                                    memory,
                                    link);
                    SpeedEstimate.of(
                                    sample,
                                    product.precision(),
                                    whole ? TrainingBytes.FP32 : TrainingBytes.BF16_FP32_GRADIENTS,
                                    hardware)
                            .ifPresentOrElse(
                                    estimates::add,
                                    () ->
                                            missing.add(
                                                    new Missing(
                                                            "estimate of " + sample.title(),
                                                            "it does not fit into memory")));
                }
            }
        }
        return estimates;
    }

    private int stages() {
        return device.kind() == DeviceSettings.Kind.CUDA ? 1 : STAGES;
    }

    private long memoryBytes() {
        return Devices.gpus().stream()
                .filter(_ -> device.kind() == DeviceSettings.Kind.CUDA)
                .filter(gpu -> gpu.index() == device.gpu())
                .findFirst()
                .map(Gpus.Gpu::memoryBytes)
                .orElse(Machine.here().memoryBytes());
    }
}
