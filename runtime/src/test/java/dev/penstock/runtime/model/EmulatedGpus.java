package dev.penstock.runtime.model;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;

/**
 * The emulated libcuda.so.1 of the device module's tests, in this JVM. Without g++ tests are
 * skipped; with {@code -Dpenstock.gpu=real} they run on the machine's GPUs.
 */
final class EmulatedGpus {
    private static final Path BUILD = Path.of("../cuda/src/test/cpp/emulator/build.sh");

    private static final String PROBLEM =
            "real".equals(System.getProperty("penstock.gpu")) ? "" : load();

    private EmulatedGpus() {}

    /** Where the library is; built if it is not there. */
    static String library() throws IOException, InterruptedException {
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

    private static String load() {
        try {
            String library = library();
            if (library.isEmpty()) {
                return "the emulator of GPUs needs g++, which is not on the PATH";
            }
            System.load(library);
            return "";
        } catch (IOException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "building the emulator was interrupted";
        }
    }

    static void require() {
        if (!PROBLEM.isEmpty()) {
            System.err.println("skipped: " + PROBLEM);
        }
        Assumptions.assumeTrue(PROBLEM.isEmpty(), PROBLEM);
    }
}
