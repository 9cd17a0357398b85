package dev.penstock.runtime.speed;

import com.sun.nio.file.ExtendedOpenOption;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;

/**
 * How fast a folder's disk takes and gives what checkpoints are made of.
 *
 * @param folder that was measured
 * @param writtenBytesPerSecond until all is on the disk (fsync)
 * @param readBytesPerSecond of the same file
 * @param syncMicroseconds until a few bytes more are on the disk (fsync), as a journal waits for
 * @param cached whether the file may have been read from memory: it cannot be passed by here
 */
public record DiskRate(
        String folder,
        double writtenBytesPerSecond,
        double readBytesPerSecond,
        double syncMicroseconds,
        boolean cached) {
    private static final int BLOCK = 4 << 20;
    private static final int ALIGNMENT = 4096;
    private static final long MOST_BYTES = 512L << 20;
    private static final int SYNCS = 9;

    /**
     * Writes a file into the folder, or the nearest one above that exists, reads it and deletes it.
     *
     * @param nanos about how long it writes, and reads
     */
    static DiskRate of(Path folder, long nanos) throws IOException {
        Path place = nearest(folder);
        Path file = Files.createTempFile(place, "penstock-speed", ".tmp");
        try (Arena arena = Arena.ofConfined()) {
            ByteBuffer block = arena.allocate(BLOCK, ALIGNMENT).asByteBuffer();
            for (int i = 0; i < BLOCK; i++) {
                block.put(i, (byte) (i * 31 ^ i >> 8)); // some disks pass over zeros
            }
            long most = Math.min(MOST_BYTES, Files.getFileStore(place).getUsableSpace() / 4);
            double written;
            double sync;
            try (FileChannel out = FileChannel.open(file, StandardOpenOption.WRITE)) {
                written = written(out, block, Math.max(BLOCK, most), nanos);
                sync = syncMicroseconds(out);
            }
            boolean cached = false;
            double read;
            try (FileChannel in =
                    FileChannel.open(file, StandardOpenOption.READ, ExtendedOpenOption.DIRECT)) {
                read = read(in, block, nanos);
            } catch (IOException | UnsupportedOperationException e) { // as tmpfs
                cached = true;
                try (FileChannel in = FileChannel.open(file, StandardOpenOption.READ)) {
                    read = read(in, block, nanos);
                }
            }
            return new DiskRate(place.toString(), written, read, sync, cached);
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static Path nearest(Path folder) {
        Path place = folder.toAbsolutePath().normalize();
        while (!Files.isDirectory(place)) {
            place = Objects.requireNonNull(place.getParent(), "the root is a folder");
        }
        return place;
    }

    private static double written(FileChannel out, ByteBuffer block, long most, long nanos)
            throws IOException {
        long start = System.nanoTime();
        long bytes = 0;
        do {
            block.clear();
            while (block.hasRemaining()) {
                bytes += out.write(block);
            }
        } while (bytes < most && System.nanoTime() - start < nanos);
        out.force(true);
        return 1e9 * bytes / (System.nanoTime() - start);
    }

    private static double syncMicroseconds(FileChannel out) throws IOException {
        double[] times = new double[SYNCS];
        for (int i = 0; i < SYNCS; i++) {
            ByteBuffer few = ByteBuffer.wrap(new byte[64]);
            long start = System.nanoTime();
            while (few.hasRemaining()) {
                out.write(few);
            }
            out.force(false);
            times[i] = (System.nanoTime() - start) / 1e3;
        }
        return Repeated.median(times);
    }

    private static double read(FileChannel in, ByteBuffer block, long nanos) throws IOException {
        long start = System.nanoTime();
        long bytes = 0;
        int count;
        do {
            block.clear();
            count = in.read(block);
            bytes += Math.max(0, count);
        } while (count == BLOCK && System.nanoTime() - start < nanos);
        return 1e9 * bytes / (System.nanoTime() - start);
    }
}
