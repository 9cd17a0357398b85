package dev.penstock.runtime.model.swap;

import dev.penstock.runtime.model.shape.SwapCommit;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * What earlier processes of a run left in its swap folder. The newest commit of any stage of any
 * replica decides: all others had completed their gradients when it was written, so that each file
 * either is of that step or can be brought there.
 */
public final class SwapState {
    /** The step of first values, which may follow on any. */
    static final long FIRST = -1;

    private static final String OWNER = "owner";

    private final Path root;
    private final int replicas;
    private final int stages;

    /**
     * @param root as {@code device.swap} names it
     */
    public SwapState(Path root, int replicas, int stages) {
        this.root = root;
        this.replicas = replicas;
        this.stages = stages;
    }

    /** The folder of one replica's stage. */
    public static Path folder(Path root, int replica, int stage) {
        return root.resolve("replica-" + replica).resolve("stage-" + stage);
    }

    /**
     * Bytes that a run which begins anew could write there, what is there already among them. The
     * folder, and those above it, need not exist.
     *
     * @throws IOException if it can be no folder
     */
    public static long roomBytes(Path root) throws IOException {
        return freeBytes(root) + bytes(root);
    }

    /**
     * Returns the bytes that can be written to a folder, which is created if there is none.
     *
     * @throws IOException if it can be no folder
     */
    public static long freeBytes(Path folder) throws IOException {
        Path there = folder.toAbsolutePath().normalize();
        Path above = there.getParent();
        while (!Files.exists(there) && above != null) {
            there = above;
            above = there.getParent();
        }
        if (!Files.isDirectory(there) || !Files.isWritable(there)) {
            throw new IOException(there + " is no folder that can be written");
        }
        return Files.getFileStore(there).getUsableSpace();
    }

    private static long bytes(Path root) throws IOException {
        if (!Files.isDirectory(root)) {
            return 0;
        }
        var sum = new LongAdder();
        Files.walkFileTree(
                root,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes is) {
                        sum.add(is.size());
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult visitFileFailed(Path file, IOException e) {
                        // another run may be using the folder, whose files come and go
                        return FileVisitResult.CONTINUE;
                    }
                });
        return sum.sum();
    }

    /** Takes the root for a run; what another run left there is of no use any more. */
    public void own(String run) throws IOException {
        Files.createDirectories(root);
        SwapText.write(root.resolve(OWNER), run);
    }

    /**
     * The update that a run had committed last, from which its stages can go on.
     *
     * @param run as {@link #own} was told
     * @param note is told why there is none, if something of this run is there
     */
    public Optional<SwapCommit> committed(String run, Consumer<String> note) {
        try {
            if (!SwapText.read(root.resolve(OWNER)).equals(run)) {
                return Optional.empty();
            }
            List<Path> folders =
                    IntStream.range(0, replicas)
                            .boxed()
                            .flatMap(
                                    replica ->
                                            IntStream.range(0, stages)
                                                    .mapToObj(s -> folder(root, replica, s)))
                            .toList();
            Optional<SwapCommit> newest = newest(folders);
            if (newest.isPresent()) {
                for (Path folder : folders) {
                    requireStep(folder, newest.get());
                    requireDifference(folder, newest.get().step());
                }
            }
            return newest;
        } catch (NoSuchFileException e) {
            return Optional.empty(); // no run, or its first values were not all there
        } catch (IOException | NumberFormatException e) {
            note.accept("%s is of no use: %s".formatted(root, e.getMessage()));
            return Optional.empty();
        }
    }

    /** Removes what the stages of a run have written; their files are not open any more. */
    public void remove() throws IOException {
        for (int replica = 0; replica < replicas; replica++) {
            for (int stage = 0; stage < stages; stage++) {
                removeFolder(folder(root, replica, stage));
            }
            Files.deleteIfExists(root.resolve("replica-" + replica));
        }
        Files.deleteIfExists(root.resolve(OWNER));
    }

    private static void removeFolder(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return;
        }
        List<Path> files;
        try (Stream<Path> there = Files.list(folder)) {
            files = there.toList();
        }
        for (Path file : files) {
            Files.delete(file);
        }
        Files.delete(folder);
    }

    private static Optional<SwapCommit> newest(List<Path> folders) throws IOException {
        List<SwapCommit> found = new ArrayList<>();
        for (Path folder : folders) {
            Path file = folder.resolve(SwapFolder.COMMIT);
            if (Files.exists(file)) {
                found.add(SwapFolder.parse(file, SwapText.read(file)));
            }
        }
        return found.stream().max((a, b) -> Long.compare(a.step(), b.step()));
    }

    private static void requireStep(Path folder, SwapCommit update) throws IOException {
        long step = update.step();
        for (String line : SwapText.read(folder.resolve(SwapFolder.GROUPS)).lines().toList()) {
            String name = line.split(" ", -1)[0];
            if (FiledGroup.hasOuter(line)) {
                long _ = wholeStep(folder.resolve(name + FiledGroup.OUTER));
            }
            Path state = folder.resolve(name + FiledGroup.STATE);
            long is = wholeStep(state);
            if (is == step) {
                continue;
            }
            if (is != update.before() && is != FIRST) {
                throw new IOException(
                        "%s: expected the state after step %d or %d, got step %d"
                                .formatted(state, step, update.before(), is));
            }
            Path gradient = folder.resolve(name + FiledGroup.GRADIENT);
            long of = wholeStep(gradient);
            if (of != step) {
                throw new IOException(
                        "%s: expected the gradient of step %d, got that of step %d"
                                .formatted(gradient, step, of));
            }
        }
    }

    /** A difference whose mean may be unfinished is needed; others are written over at will. */
    private static void requireDifference(Path folder, long step) throws IOException {
        Path file = folder.resolve(SwapFolder.DIFFERENCE);
        if (Files.exists(file)) {
            try (SwapFile difference = SwapFile.open(file)) {
                if (difference.turn() >= step && !difference.isWhole()) {
                    throw new IOException(file + " is torn");
                }
            }
        }
    }

    private static long wholeStep(Path file) throws IOException {
        try (SwapFile opened = SwapFile.open(file)) {
            if (!opened.isWhole()) {
                throw new IOException(file + " is torn");
            }
            return opened.step();
        }
    }
}
