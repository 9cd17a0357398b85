package dev.penstock.cuda;

import dev.penstock.cuda.cublas.Cublas;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.gpu.GpuProbe;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/**
 * A libcuda.so.1 in which the CPU emulates GPUs, built by g++ from {@code src/test/cpp} and loaded
 * before the first class of JCuda, which cannot tell the difference. The product's kernels run in
 * it, compiled from the same sources; beside it lie an emulated cuBLAS and NCCL. Without g++ tests
 * are skipped; with {@code -Dpenstock.gpu=real} they run on the machine's GPU instead.
 */
public final class EmulatedGpus {
    /** Each GPU runs the threads of a block in a different order. */
    private static final List<String> THREAD_ORDERS = List.of("forward", "reverse", "shuffled:20");

    private static final long TEXT_BYTES = 1 << 16;

    private static final boolean REAL = "real".equals(System.getProperty("penstock.gpu"));
    private static final String PROBLEM = REAL ? noRealGpu() : load();

    private EmulatedGpus() {}

    /** Why there is no GPU; empty if there is one. */
    private static String noRealGpu() {
        return switch (GpuProbe.run()) {
            case Gpus.Found _ -> "";
            case Gpus.None(String reason) -> "no GPU: " + reason;
        };
    }

    /** Runs the emulator's build; returns where the library is, or nothing if there is no g++. */
    private static String built(String... arguments) throws IOException, InterruptedException {
        Path script = Path.of("../cuda/src/test/cpp/emulator/build.sh").toAbsolutePath();
        List<String> command = new ArrayList<>(List.of("bash", script.toString()));
        command.addAll(List.of(arguments));
        Process build =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String library = new String(build.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int exit = build.waitFor();
        if (exit != 0 && exit != 3) {
            throw new IllegalStateException("building the emulator of GPUs: exit code " + exit);
        }
        return library.strip();
    }

    private static String load() {
        try {
            String library = built();
            if (library.isEmpty()) {
                return "the emulator of GPUs needs g++, which is not on the PATH";
            }
            System.load(library);
            // those beside it, not others that the machine may have
            String folder = String.valueOf(Path.of(library).getParent());
            System.setProperty("penstock.cublas", folder);
            System.setProperty("penstock.nccl", folder);
            change("THREAD_ORDER", String.join(",", THREAD_ORDERS));
            return "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "building the emulator was interrupted";
        }
    }

    /** Skips the test where there is no emulator. */
    public static void require() {
        if (!PROBLEM.isEmpty()) {
            System.err.println("skipped: " + PROBLEM);
        }
        Assumptions.assumeTrue(PROBLEM.isEmpty(), PROBLEM);
    }

    /** Skips the test on a real GPU, which would not survive it. */
    public static void requireEmulated() {
        require();
        Assumptions.assumeFalse(REAL, "not on a real GPU");
    }

    /**
     * From now on kernels are those that say what they read and write: races fail them, and {@link
     * #counted()} has their bytes. {@link #checkNoMore()} ends it.
     */
    public static void check() {
        requireEmulated();
        try {
            change("CHECKED", built("checked"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("building the emulator was interrupted", e);
        }
    }

    public static void checkNoMore() {
        set("CHECKED", "");
    }

    /**
     * What a kernel, or a library's function, did.
     *
     * @param read bytes, as those written: a word counts once in a launch; 0 for kernels that were
     *     not checked
     * @param operations floating-point operations of tensor cores
     */
    public record Count(long launches, long read, long written, double operations) {
        public long bytes() {
            return read + written;
        }
    }

    /** What was done since this was last asked, by the names of kernels. */
    public static Map<String, Count> counted() {
        return told("penstockEmulatorCounted")
                .lines()
                .map(line -> line.split("\t", -1))
                .collect(
                        Collectors.toMap(
                                each -> each[0],
                                each ->
                                        new Count(
                                                Long.parseLong(each[1]),
                                                Long.parseLong(each[2]),
                                                Long.parseLong(each[3]),
                                                Double.parseDouble(each[4]))));
    }

    /** What went wrong in the kernel that failed last. */
    public static String failure() {
        return told("penstockEmulatorFailure");
    }

    private static String told(String function) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(TEXT_BYTES);
            long bytes =
                    (long)
                            Linker.nativeLinker()
                                    .downcallHandle(
                                            SymbolLookup.loaderLookup().findOrThrow(function),
                                            FunctionDescriptor.of(
                                                    ValueLayout.JAVA_LONG,
                                                    ValueLayout.ADDRESS,
                                                    ValueLayout.JAVA_LONG))
                                    .invoke(text, TEXT_BYTES);
            if (bytes >= TEXT_BYTES) {
                throw new IllegalStateException("the emulator has more to tell: " + bytes);
            }
            return text.getString(0);
        } catch (Throwable e) {
            throw new IllegalStateException("asking the emulator: " + function, e);
        }
    }

    /** Whether tests take models' own sizes: not on CPUs, and not if asked for small ones. */
    static boolean areWhole() {
        return REAL && !"small".equals(System.getProperty("penstock.gpu.sizes"));
    }

    /** Whether tests use the machine's own GPU. */
    static boolean areReal() {
        return REAL;
    }

    /** Why there are no GPUs for tests; empty if there are. */
    static String problem() {
        return PROBLEM;
    }

    /**
     * A GPU of each order of threads, the last with graphs, all kernels ours; none where there is
     * no emulator.
     */
    static Stream<DeviceSettings> devices() {
        if (!PROBLEM.isEmpty()) {
            System.err.println("skipped on GPUs: " + PROBLEM);
        }
        int gpus = PROBLEM.isEmpty() ? REAL ? 1 : THREAD_ORDERS.size() : 0;
        return IntStream.range(0, gpus)
                .mapToObj(gpu -> gpu(Gemm.KERNELS).withGpu(gpu).withGraphs(gpu == 2));
    }

    /** A GPU whose products are cuBLAS's; none where there is no emulator, or no cuBLAS. */
    static Stream<DeviceSettings> withCublas() {
        if (PROBLEM.isEmpty() && Cublas.probe() instanceof Cublas.Probe.Missing(String reason)) {
            System.err.println("skipped with cuBLAS: " + reason);
            return Stream.empty();
        }
        return PROBLEM.isEmpty() ? Stream.of(gpu(Gemm.CUBLAS)) : Stream.empty();
    }

    private static DeviceSettings gpu(Gemm gemm) {
        return DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGemm(gemm);
    }

    /** Changes a setting of the emulator; an empty value changes it back. */
    public static void set(String name, String value) {
        if (PROBLEM.isEmpty() && !REAL) {
            change(name, value);
        }
    }

    /**
     * What was made on emulated GPUs and not given back: memory, pinned memory, streams, events,
     * kernels, graphs.
     */
    public static long live() {
        return ask("penstockEmulatorLive");
    }

    /** How often drivers gave emulated GPUs something to do; a graph counts once. */
    public static long launches() {
        return ask("penstockEmulatorLaunches");
    }

    /** How often the program waited for emulated GPUs. */
    public static long waits() {
        return ask("penstockEmulatorWaits");
    }

    /** How many calls had to do with an emulated GPU: those that LOSE_AT_CALL counts. */
    public static long calls() {
        return ask("penstockEmulatorCalls");
    }

    private static long ask(String function) {
        try {
            return (long)
                    Linker.nativeLinker()
                            .downcallHandle(
                                    SymbolLookup.loaderLookup().findOrThrow(function),
                                    FunctionDescriptor.of(ValueLayout.JAVA_LONG))
                            .invoke();
        } catch (Throwable e) {
            throw new IllegalStateException("asking the emulator: " + function, e);
        }
    }

    private static void change(String name, String value) {
        try (Arena arena = Arena.ofConfined()) {
            Linker.nativeLinker()
                    .downcallHandle(
                            SymbolLookup.loaderLookup().findOrThrow("penstockEmulatorSet"),
                            FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS))
                    .invoke(arena.allocateFrom(name), arena.allocateFrom(value));
        } catch (Throwable e) {
            throw new IllegalStateException("setting " + name + " of the emulator", e);
        }
    }
}
