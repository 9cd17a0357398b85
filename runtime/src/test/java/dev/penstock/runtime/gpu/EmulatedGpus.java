package dev.penstock.runtime.gpu;

import dev.penstock.cuda.device.Gpus;
import dev.penstock.cuda.gpu.GpuProbe;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;

/**
 * The emulated libcuda.so.1, libcublas.so.13 and libnccl.so.2 of the device module's tests, in this
 * JVM. Without g++ tests are skipped; with {@code -Dpenstock.gpu=real} they run on the machine's
 * GPUs.
 */
public final class EmulatedGpus {
    private static final Path BUILD = Path.of("../cuda/src/test/cpp/emulator/build.sh");

    private static final boolean REAL = "real".equals(System.getProperty("penstock.gpu"));
    private static final String PROBLEM = REAL ? noRealGpu() : load();

    private EmulatedGpus() {}

    /** Where the library is; built if it is not there. */
    private static String library() throws IOException, InterruptedException {
        Process build =
                new ProcessBuilder("bash", BUILD.toAbsolutePath().toString())
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start();
        String library = new String(build.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int exit = build.waitFor();
        if (exit != 0 && exit != 3) {
            throw new IllegalStateException("building the emulator of GPUs: exit code " + exit);
        }
        return library.strip();
    }

    /** Why there is no GPU; empty if there is one. */
    private static String noRealGpu() {
        return switch (GpuProbe.run()) {
            case Gpus.Found _ -> "";
            case Gpus.None(String reason) -> "no GPU: " + reason;
        };
    }

    private static String load() {
        try {
            String library = library();
            if (library.isEmpty()) {
                return "the emulator of GPUs needs g++, which is not on the PATH";
            }
            System.load(library);
            // the libraries beside it, not those that the machine may have
            String folder = String.valueOf(Path.of(library).getParent());
            System.setProperty("penstock.cublas", folder);
            System.setProperty("penstock.nccl", folder);
            return "";
        } catch (IOException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "building the emulator was interrupted";
        }
    }

    /** The GPU of the highest number: an emulated one has another order of threads. */
    public static int last() {
        return GpuProbe.run() instanceof Gpus.Found(var gpus) ? gpus.size() - 1 : 0;
    }

    /** Where the emulated libraries are, for the environment of other processes. */
    public static Path folder() {
        return Path.of(System.getProperty("penstock.cublas", "."));
    }

    /** Skips the test on a real GPU: it would not survive what the test does. */
    public static void requireEmulated() {
        require();
        Assumptions.assumeFalse(REAL, "not on a real GPU");
    }

    /** Skips the test where there is no emulator. */
    public static void require() {
        if (!PROBLEM.isEmpty()) {
            System.err.println("skipped: " + PROBLEM);
        }
        Assumptions.assumeTrue(PROBLEM.isEmpty(), PROBLEM);
    }

    /** Changes a setting of the emulator; an empty value changes it back. */
    public static void set(String name, String value) {
        if (PROBLEM.isEmpty() && !REAL) {
            change(name, value);
        }
    }

    /** How often drivers gave emulated GPUs something to do; a graph counts once. */
    public static long launches() {
        return ask("penstockEmulatorLaunches");
    }

    /** How often the program waited for emulated GPUs. */
    public static long waits() {
        return ask("penstockEmulatorWaits");
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
