package dev.penstock.benchmarks;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.runtime.config.reading.ConfigException;
import java.io.IOException;
import java.util.function.Supplier;

/**
 * What parts of the GPU kit share: they say by one line, which the verdict repeats, what they found
 * or why they failed.
 */
final class GpuKitPart {
    /** Ends the names of rows of products that do nothing else. */
    static final String GEMMEX = ":gemmex";

    private static final String CUBLASLT = "penstock.cublaslt";

    private GpuKitPart() {}

    /** What a part does. */
    interface Work {
        void run() throws IOException;
    }

    /** Does it, or prints {@code cannot DO: REASON} and ends the process. */
    static void run(String what, Work work) {
        try {
            work.run();
        } catch (ConfigException | DeviceException | IllegalStateException | IOException e) {
            System.out.println("cannot " + what + ": " + firstLine(e));
            System.exit(1);
        }
    }

    /** Prints what a part found. */
    static void result(String found) {
        System.out.println("result: " + found);
    }

    /** Measures a training, one of such a row without cublasLt. */
    static TrainingMeasurement measure(String row, TrainingMeasurement.Setup setup) {
        return row.endsWith(GEMMEX)
                ? withoutCublasLt(() -> TrainingMeasurement.of(setup))
                : TrainingMeasurement.of(setup);
    }

    /** Does something on GPUs that are opened meanwhile, which do not use cublasLt. */
    static <T> T withoutCublasLt(Supplier<T> work) {
        String before = System.getProperty(CUBLASLT, "");
        System.setProperty(CUBLASLT, "none");
        try {
            return work.get();
        } finally {
            System.setProperty(CUBLASLT, before);
        }
    }

    /** Of what an exception says. */
    static String firstLine(Exception e) {
        return String.valueOf(e.getMessage()).lines().findFirst().orElse("");
    }
}
