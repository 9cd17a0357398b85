package dev.penstock.runtime.runs;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigException;
import com.typesafe.config.ConfigFactory;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.events.EventLogTail;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunKeeper;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/** Looks for runs, and at what became of them. Writes nothing and follows no symbolic link. */
public final class LocalRuns {
    private static final String NAME = "run.name";
    private static final String STEPS = "run.steps";
    private static final String KEEP_BEST = "checkpoint.keep-best";

    private LocalRuns() {}

    /**
     * Finds the runs in a folder, those that did something last first.
     *
     * @param folder of run directories, or a run directory itself
     * @throws IOException if the folder or a run's files cannot be read
     */
    public static List<LocalRun> in(Path folder) throws IOException {
        if (new RunDirectory(folder).holdsRun()) {
            return List.of(of(folder));
        }
        List<LocalRun> runs = new ArrayList<>();
        try (Stream<Path> entries = Files.list(folder)) {
            for (Path entry : entries.toList()) {
                if (Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)
                        && new RunDirectory(entry).holdsRun()) {
                    runs.add(of(entry));
                }
            }
        }
        runs.sort(Comparator.comparing(LocalRun::changed).reversed().thenComparing(LocalRun::path));
        return runs;
    }

    /**
     * Looks at one run.
     *
     * @param path of its directory, which holds a run
     * @throws IOException if its files cannot be read
     */
    public static LocalRun of(Path path) throws IOException {
        RunDirectory directory = new RunDirectory(path);
        Optional<RunKeeper> keeper = directory.livingKeeper();
        Config resolved = resolved(directory.resolvedConfiguration());
        Past past = Past.of(directory);
        return new LocalRun(
                path,
                resolved.hasPath(NAME)
                        ? resolved.getString(NAME)
                        : String.valueOf(directory.path().getFileName()),
                keeper.isPresent() ? LocalRun.State.RUNNING : past.state,
                past.step,
                resolved.hasPath(STEPS) ? resolved.getLong(STEPS) : 0,
                past.loss,
                bytes(path),
                changed(directory),
                keeper);
    }

    /** Whether its configuration asks for the best checkpoint to stay. */
    static boolean keepsBest(RunDirectory run) throws IOException {
        Config resolved = resolved(run.resolvedConfiguration());
        return resolved.hasPath(KEEP_BEST) && resolved.getBoolean(KEEP_BEST);
    }

    private static Config resolved(Path file) throws IOException {
        try {
            Config resolved = ConfigFactory.parseString(Files.readString(file));
            var _ = resolved.getLong(STEPS);
            return resolved;
        } catch (NoSuchFileException | ConfigException e) {
            return ConfigFactory.empty(); // cut off, or no run's: the rest is still told
        }
    }

    /** What the event log tells; without one, the newest checkpoint's step. */
    private static final class Past {
        LocalRun.State state = LocalRun.State.STOPPED;
        long step;
        OptionalDouble loss = OptionalDouble.empty();

        static Past of(RunDirectory directory) throws IOException {
            Past past = new Past();
            EventLogTail.backTo(
                            directory.events(),
                            event ->
                                    event instanceof RunEvent.Stepped
                                            || event instanceof RunEvent.Began)
                    .forEach(past::add);
            if (past.step == 0) {
                past.step = newestCheckpoint(directory.checkpoints());
            }
            return past;
        }

        private void add(RunEvent event) {
            switch (event) {
                case RunEvent.Began began -> {
                    state = LocalRun.State.STOPPED;
                    if (began.resumedStep() != step) {
                        step = began.resumedStep();
                        loss = OptionalDouble.empty();
                    }
                }
                case RunEvent.Stepped stepped -> {
                    step = stepped.step();
                    loss = OptionalDouble.of(stepped.loss());
                }
                case RunEvent.Ended ended -> {
                    state =
                            switch (ended.outcome()) {
                                case COMPLETED -> LocalRun.State.COMPLETE;
                                case INTERRUPTED -> LocalRun.State.INTERRUPTED;
                                case FAILED -> LocalRun.State.FAILED;
                            };
                }
                default -> {}
            }
        }
    }

    private static long newestCheckpoint(Path checkpoints) throws IOException {
        if (!Files.isDirectory(checkpoints)) {
            return 0;
        }
        try (Stream<Path> folders = Files.list(checkpoints)) {
            return folders.filter(folder -> !folder.getFileName().toString().contains("."))
                    .map(CheckpointFolders::stepOf)
                    .flatMapToLong(step -> step.stream())
                    .max()
                    .orElse(0);
        }
    }

    private static Instant changed(RunDirectory directory) throws IOException {
        Instant newest = Instant.EPOCH;
        for (Path file :
                List.of(
                        directory.resolvedConfiguration(),
                        directory.metrics(),
                        directory.events())) {
            if (Files.exists(file)) {
                Instant changed = Files.getLastModifiedTime(file).toInstant();
                newest = changed.isAfter(newest) ? changed : newest;
            }
        }
        return newest;
    }

    /** Of all files below a path; those that go while it looks count nothing. */
    static long bytes(Path path) throws IOException {
        AtomicLong bytes = new AtomicLong();
        Files.walkFileTree(
                path,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                        bytes.addAndGet(attributes.isRegularFile() ? attributes.size() : 0);
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult visitFileFailed(Path file, IOException e) {
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult postVisitDirectory(Path folder, IOException e) {
                        return FileVisitResult.CONTINUE;
                    }
                });
        return bytes.get();
    }
}
