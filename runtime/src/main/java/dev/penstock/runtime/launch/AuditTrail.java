package dev.penstock.runtime.launch;

import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.checkpoint.StageFile;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.WorkUnit;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The books of a run's stages, one file for each rank that holds a stage, which continues with it
 * wherever it lives. A run keeps them if their folder exists when it starts. Text:
 *
 * <pre>
 *   summed 7 0.0 1.0 2.0        gradients of these (micro-batch.slice) are in the sum of step 7
 *   applied 7 1a2b3c4d 5e6f7081 step 7 was applied: checksums of the state before and after
 * </pre>
 *
 * @param folder of the books
 */
public record AuditTrail(Path folder) {
    private static final Pattern SUMMED = Pattern.compile("summed (\\d+)((?: \\d+\\.\\d+)*)");
    private static final Pattern APPLIED =
            Pattern.compile("applied (\\d+) ([0-9a-f]{8}) ([0-9a-f]{8})");

    /**
     * Whose book it is.
     *
     * @param place of one of the ranks that hold the stage
     */
    public record Holder(int stage, RankPlace place) {
        /** Everybody who holds a stage. */
        public static List<Holder> all(RankGrid grid, Placement placement) {
            List<Holder> all = new ArrayList<>();
            for (int rank = 0; rank < grid.ranks(); rank++) {
                RankPlace place = grid.placeOf(rank);
                for (int stage : placement.stagesOf(place.pipeline())) {
                    all.add(new Holder(stage, place));
                }
            }
            return all;
        }

        @Override
        public String toString() {
            return StageFile.name(stage, place).replace('-', ' ');
        }
    }

    /** One line of a stage's book. */
    public sealed interface Entry {}

    /** All gradients of a step are summed; nothing of it is applied. */
    public record Summed(long step, List<WorkUnit> units) implements Entry {
        public Summed {
            units = List.copyOf(units);
        }
    }

    /**
     * A step was applied.
     *
     * @param before checksum of parameters and optimizer state
     * @param after the same, after the update
     */
    public record Applied(long step, long before, long after) implements Entry {}

    /** The books of the run in this directory. */
    public static AuditTrail of(Path runDirectory) {
        return new AuditTrail(runDirectory.resolve("audit"));
    }

    /** Asks the run to keep books; before it starts. */
    public void begin() {
        try {
            Files.createDirectories(folder);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot make " + folder, e);
        }
    }

    boolean isKept() {
        return Files.isDirectory(folder);
    }

    /** One write, so that the death of a process leaves whole lines. */
    void add(Holder holder, Entry entry) {
        try {
            Files.writeString(file(holder), print(entry) + "\n", CREATE, APPEND);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write " + file(holder), e);
        }
    }

    /** Everything that a stage did at a place, in order; nothing if its rank never took part. */
    public List<Entry> of(Holder holder) {
        List<Entry> entries = new ArrayList<>();
        if (!Files.exists(file(holder))) {
            return entries;
        }
        try {
            for (String line : Files.readAllLines(file(holder))) {
                entries.add(parse(line, holder));
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file(holder), e);
        }
        return entries;
    }

    private Path file(Holder holder) {
        return folder.resolve(StageFile.name(holder.stage(), holder.place()) + ".txt");
    }

    private static String print(Entry entry) {
        return switch (entry) {
            case Summed(long step, List<WorkUnit> units) ->
                    units.stream()
                            .map(unit -> " %d.%d".formatted(unit.microBatch(), unit.slice()))
                            .collect(Collectors.joining("", "summed " + step, ""));
            case Applied(long step, long before, long after) ->
                    "applied %d %08x %08x".formatted(step, before, after);
        };
    }

    private static Entry parse(String line, Holder holder) {
        Matcher summed = SUMMED.matcher(line);
        if (summed.matches()) {
            List<WorkUnit> units =
                    Stream.of(summed.group(2).split(" "))
                            .filter(text -> !text.isEmpty())
                            .map(text -> text.split("\\."))
                            .map(
                                    parts ->
                                            new WorkUnit(
                                                    holder.stage(),
                                                    Integer.parseInt(parts[0]),
                                                    Integer.parseInt(parts[1])))
                            .toList();
            return new Summed(Long.parseLong(summed.group(1)), units);
        }
        Matcher applied = APPLIED.matcher(line);
        if (applied.matches()) {
            return new Applied(
                    Long.parseLong(applied.group(1)),
                    Long.parseLong(applied.group(2), 16),
                    Long.parseLong(applied.group(3), 16));
        }
        throw new IllegalArgumentException(
                "book of %s: expected a summed or applied line, got \"%s\""
                        .formatted(holder, line));
    }
}
