package dev.penstock.runtime.model.swap;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;
import static java.util.stream.Collectors.joining;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.SwapCommit;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * The groups of a stage in files of a folder, which outlive the process.
 *
 * <pre>
 *   groups        names and sizes; there only when all groups have values
 *   commit        the newest update: step, clip factor, the update before, steps that overflowed
 *   0-h.0.state   parameters and moments; replaced as a whole by every update
 *   0-h.0.grad    the gradient of the step under way
 *   0-h.0.outer   of replicas that take steps alone: outer parameters and momentum
 *   difference    likewise: how far this replica has come with a fragment
 * </pre>
 *
 * <p>A kill at any time leaves files from which {@link SwapState} finds the newest committed step.
 */
public final class SwapFolder implements SwapSpace {
    static final String GROUPS = "groups";
    static final String COMMIT = "commit";

    /** The row of which {@link SwapState} knows. */
    public static final String DIFFERENCE = "difference";

    private final Path folder;
    private final boolean kept;
    private final FiledGroup.Shared shared;
    private final List<FiledGroup> groups = new ArrayList<>();
    private final List<FiledRow> rows = new ArrayList<>();
    private final ExecutorService loads =
            Executors.newSingleThreadExecutor(Thread.ofVirtual().name("swap-load").factory());
    private final FileChannel lock;

    /**
     * Takes a folder, which is created if there is none.
     *
     * @param scratch for what an update works in
     * @param kept whether groups go on with what is there
     * @param dropsPages see {@link dev.penstock.runtime.model.shape.SwapSettings}
     * @throws DeviceException if it cannot be written or another process has it
     */
    public SwapFolder(Path folder, DeviceScope scratch, boolean kept, boolean dropsPages) {
        this(folder, scratch, kept, dropsPages, _ -> {});
    }

    /**
     * @param beforeWrite told what is about to be written, for tests
     */
    SwapFolder(
            Path folder,
            DeviceScope scratch,
            boolean kept,
            boolean dropsPages,
            Consumer<String> beforeWrite) {
        this.folder = folder;
        this.kept = kept;
        try {
            Files.createDirectories(folder);
            lock = FileChannel.open(folder.resolve("lock"), CREATE, WRITE);
        } catch (IOException e) {
            throw failure("begin", folder, e);
        }
        try {
            take();
            shared =
                    new FiledGroup.Shared(
                            UpdateRoom.allocate(scratch),
                            loads,
                            beforeWrite,
                            dropsPages,
                            new AtomicLong(),
                            new AtomicLong());
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private void take() {
        try {
            if (lock.tryLock() == null) {
                throw new OverlappingFileLockException();
            }
            if (!kept) {
                Files.deleteIfExists(folder.resolve(GROUPS));
                Files.deleteIfExists(folder.resolve(COMMIT));
            }
        } catch (OverlappingFileLockException e) {
            throw new DeviceException(
                    "swap: expected %s for this run alone, but another run uses it; name another folder as device.swap"
                            .formatted(folder),
                    e);
        } catch (IOException e) {
            throw failure("begin", folder, e);
        }
    }

    static DeviceException failure(String what, Path file, IOException e) {
        return new DeviceException(
                "swap %s: expected room and permission to write %s, got '%s'; free some space, or name another folder as device.swap"
                        .formatted(what, file, FileCause.of(e)),
                e);
    }

    @Override
    public SwappedGroup group(String name, long elements, OptimizerState form) {
        String file = groups.size() + "-" + name.replaceAll("[^A-Za-z0-9._-]", "_");
        var group = new FiledGroup(folder.resolve(file), elements, form, shared, kept);
        groups.add(group);
        return group;
    }

    @Override
    public SwappedRow row(String name, DType type, long columns) {
        SwapFile file =
                shared.file(
                        folder.resolve(name),
                        List.of(columns * type.bytes()),
                        shared.ofGradient(),
                        kept);
        var row = new FiledRow(file, type, Math.toIntExact(columns), shared);
        rows.add(row);
        return row;
    }

    @Override
    public void complete() {
        if (kept) {
            return;
        }
        groups.forEach(FiledGroup::sealFirst);
        write(GROUPS, String.join("\n", groups.stream().map(FiledGroup::words).toList()));
    }

    @Override
    public void commit(SwapCommit update) {
        write(COMMIT, text(update));
    }

    private static String text(SwapCommit update) {
        return "%d %s %d %d"
                        .formatted(
                                update.step(),
                                Double.toHexString(update.clipFactor()),
                                update.before(),
                                update.skipped())
                + update.overflows().stream().map(step -> " " + step).collect(joining());
    }

    /** Returns what a commit's text says. */
    static SwapCommit parse(Path file, String text) throws IOException {
        String[] words = text.split(" ", -1);
        if (words.length < 4) {
            throw new IOException(
                    file + ": expected a step, a clip factor, the step before and skipped steps");
        }
        return new SwapCommit(
                Long.parseLong(words[0]),
                Double.parseDouble(words[1]),
                Long.parseLong(words[2]),
                Long.parseLong(words[3]),
                Arrays.stream(words).skip(4).map(Long::valueOf).toList());
    }

    private void write(String name, String text) {
        shared.beforeWrite().accept(name);
        Path file = folder.resolve(name);
        try {
            SwapText.write(file, text);
        } catch (IOException e) {
            throw failure("commit", file, e);
        }
    }

    @Override
    public long bytes() {
        return groups.stream().mapToLong(FiledGroup::bytes).sum()
                + rows.stream().mapToLong(FiledRow::bytes).sum();
    }

    @Override
    public long loadNanos() {
        return shared.loadNanos().get();
    }

    @Override
    public long leaveNanos() {
        return shared.leaveNanos().get();
    }

    @Override
    public void close() {
        loads.close();
        groups.forEach(FiledGroup::close);
        rows.forEach(FiledRow::close);
        try {
            lock.close();
        } catch (IOException e) {
            throw failure("end", folder, e);
        }
    }
}
