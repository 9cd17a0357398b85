package dev.penstock.benchmarks;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.runtime.config.reading.ConfigException;
import java.io.IOException;

/** How parts of the GPU kit fail: by one line, which its verdict repeats, and exit code 1. */
final class GpuKitPart {
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

    /** Of what an exception says. */
    static String firstLine(Exception e) {
        return String.valueOf(e.getMessage()).lines().findFirst().orElse("");
    }
}
