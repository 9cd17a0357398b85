package dev.penstock.runtime.launch.devices;

import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;

import dev.penstock.cuda.device.Gpus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;

/**
 * The GPUs that a run has lost, in a file of its directory: processes that come later, on whichever
 * node, do not open them again. A line for each: the boot of the machine, the GPU, when, and why. A
 * machine that was started anew has them back.
 */
public final class LostGpus {
    /** In a run's directory. */
    static final String FILE = "lost-gpus.txt";

    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

    private final Path file;

    public LostGpus(Path runDirectory) {
        this.file = runDirectory.resolve(FILE);
    }

    Path file() {
        return file;
    }

    /** When and why this GPU was lost, if it was since the machine started. */
    Optional<String> find(Gpus.Gpu gpu) {
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        String key = key(gpu);
        try {
            return Files.readAllLines(file).stream()
                    .filter(line -> line.startsWith(key))
                    .map(line -> line.substring(key.length()))
                    .findFirst();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file, e);
        }
    }

    /** Notes that a GPU is lost; on the disk on return. */
    void add(Gpus.Gpu gpu, Instant when, String reason) {
        String line = "%s%s %s%n".formatted(key(gpu), when, reason.lines().findFirst().orElse(""));
        try (FileChannel channel = FileChannel.open(file, CREATE, APPEND)) {
            channel.write(StandardCharsets.UTF_8.encode(line));
            channel.force(true);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot note a lost GPU in " + file, e);
        }
    }

    private static String key(Gpus.Gpu gpu) {
        return "%s %s ".formatted(boot(), gpu.uuid());
    }

    private static String boot() {
        try {
            return Files.readString(BOOT_ID).strip();
        } catch (IOException e) {
            return "unknown-boot";
        }
    }
}
