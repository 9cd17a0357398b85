package dev.penstock.runtime.dashboard;

import dev.penstock.runtime.metrics.MetricsFile;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.StepMetrics;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/** Runs in the folder of the run that is shown, whose losses may be drawn beside its own. */
final class SiblingRuns {
    private static final int MOST = 50;
    private static final int BUCKETS = 1_000;

    private final Path self;

    /** A curve; steps rise. */
    record Losses(double[] steps, double[] losses) {}

    SiblingRuns(Path self) {
        this.self = self.toAbsolutePath().normalize();
    }

    /** Their names, those that did something last first. */
    List<String> names() throws IOException {
        Path folder = self.getParent();
        if (folder == null) {
            return List.of();
        }
        Map<String, FileTime> changed = new HashMap<>();
        try (Stream<Path> entries = Files.list(folder)) {
            for (Path entry : entries.toList()) {
                Path metrics = new RunDirectory(entry).metrics();
                if (!entry.equals(self)
                        && Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)
                        && Files.isRegularFile(metrics)) {
                    changed.put(entry.getFileName().toString(), Files.getLastModifiedTime(metrics));
                }
            }
        }
        return changed.entrySet().stream()
                .sorted(Map.Entry.comparingByValue(Comparator.reverseOrder()))
                .limit(MOST)
                .map(Map.Entry::getKey)
                .toList();
    }

    /** The losses of one of them, thinned; empty if there is no such run. */
    Optional<Losses> losses(String name) throws IOException {
        if (!names().contains(name)) { // and so no path that leads elsewhere
            return Optional.empty();
        }
        Map<Long, Double> losses = new TreeMap<>();
        MetricsFile.forEach(
                new RunDirectory(self.resolveSibling(name)).metrics(),
                line -> {
                    if (line instanceof StepMetrics step) {
                        losses.put(step.step(), step.loss());
                    }
                });
        var series = new StepSeries();
        losses.forEach((step, loss) -> series.add(StepSeries.row(step, loss)));
        double[][] columns = series.thinned(BUCKETS);
        return Optional.of(
                new Losses(
                        columns[StepSeries.Column.STEP.ordinal()],
                        columns[StepSeries.Column.LOSS.ordinal()]));
    }
}
