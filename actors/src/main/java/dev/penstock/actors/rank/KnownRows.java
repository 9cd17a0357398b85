package dev.penstock.actors.rank;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * What one end of a link knows of the activations of the data's first rows: a row for each, in it
 * the tokens from the first on. What a step makes of them is apart, a row for each sequence of the
 * step, until the step is committed: a step that is not committed may be left out or done again.
 *
 * <p>Sequences that are no such row, as those of evaluations, travel as they are. A row that comes
 * twice in a step, at the border of two epochs, differs both times from what was known before the
 * step; the later place in the step is what is known afterwards.
 */
final class KnownRows {
    /** Of a sequence's place in a step: its row, and how many columns are known of it now. */
    static final int PLACE_COLUMNS = 2;

    private static final int NONE = -1;

    private final StageProgram stage;
    private final int slices;
    private final NamedTensor committed;
    private final Tensor visited;
    private final Tensor places;
    private final Kernels kernels;

    /** For each sequence of the step, its row and how many columns are known of it now. */
    private final int[] rows;

    private final int[] columns;

    /**
     * @param stage at this end; in a mirror, which sends and receives nothing, any whose boundary
     *     tensors have the same sizes
     * @param slices of a micro-batch
     * @param committed F32 {@code [rows, columns of a sequence]}, dense
     * @param visited F32 {@code [sequences of a step, columns of a sequence]}, dense
     * @param places F32 {@code [sequences of a step, 2]}, dense: see {@link #note}
     */
    KnownRows(
            StageProgram stage,
            int slices,
            NamedTensor committed,
            Tensor visited,
            Tensor places,
            Kernels kernels) {
        this.stage = stage;
        this.slices = slices;
        this.committed = committed;
        this.visited = visited;
        this.places = places;
        this.kernels = kernels;
        rows = new int[visited.rows()];
        columns = new int[visited.rows()];
        Arrays.fill(rows, NONE);
    }

    /** What is known since the last commit. */
    NamedTensor named() {
        return committed;
    }

    /** Turns a unit's activations into what is to be encoded: their deltas. */
    void subtractFrom(Tensor activations, WorkUnit unit) {
        Tensor bySequences = bySequences(activations);
        for (int i = 0; i < bySequences.rows(); i++) {
            int row = row(unit, i);
            if (row != NONE) {
                kernels.subtract(known(row, unit), bySequences.rows(i, 1));
            }
        }
    }

    /** Turns a unit's decoded deltas into its activations, which are known from now on. */
    void addTo(Tensor decoded, WorkUnit unit) {
        Tensor bySequences = bySequences(decoded);
        int end = columnsBefore(unit, slices);
        for (int i = 0; i < bySequences.rows(); i++) {
            int row = row(unit, i);
            int place = unit.microBatch() * bySequences.rows() + i;
            rows[place] = row;
            columns[place] = end;
            if (row != NONE) {
                Tensor activations = bySequences.rows(i, 1);
                kernels.add(known(row, unit), activations);
                kernels.copy(activations, part(visited, place, unit));
            }
        }
    }

    /** What the step under way makes of that: the activations, and where they belong. */
    Stream<NamedTensor> pending() {
        String name = committed.name();
        return Stream.of(
                new NamedTensor(
                        name + ".visited", List.of(visited.rows(), visited.columns()), visited),
                new NamedTensor(name + ".places", List.of(places.rows(), PLACE_COLUMNS), places));
    }

    /** All units have sent and received: writes down for a mirror where a step's rows belong. */
    void note() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment written = arena.allocate(places.bytes(), Long.BYTES);
            for (int place = 0; place < rows.length; place++) {
                long at = (long) place * PLACE_COLUMNS;
                written.setAtIndex(ValueLayout.JAVA_FLOAT, at, rows[place]);
                written.setAtIndex(ValueLayout.JAVA_FLOAT, at + 1, columns[place]);
            }
            places.write(written);
        }
    }

    /** What {@link #pending} lists came from elsewhere. */
    void replaced() {
        MemorySegment written = places.contents();
        for (int place = 0; place < rows.length; place++) {
            long at = (long) place * PLACE_COLUMNS;
            rows[place] = (int) written.getAtIndex(ValueLayout.JAVA_FLOAT, at);
            columns[place] = (int) written.getAtIndex(ValueLayout.JAVA_FLOAT, at + 1);
        }
    }

    /** A step was committed. */
    void commit() {
        for (int place = 0; place < rows.length; place++) {
            if (rows[place] != NONE) {
                kernels.copy(
                        visited.rows(place, 1).columns(0, columns[place]),
                        committed.tensor().rows(rows[place], 1).columns(0, columns[place]));
                rows[place] = NONE;
            }
        }
    }

    private int row(WorkUnit unit, int sequence) {
        int row = stage.dataRow(unit.microBatch(), sequence);
        return row < committed.tensor().rows() ? row : NONE;
    }

    private Tensor known(int row, WorkUnit unit) {
        return part(committed.tensor(), row, unit);
    }

    private Tensor part(Tensor all, int row, WorkUnit unit) {
        int first = columnsBefore(unit, unit.slice());
        return all.rows(row, 1).columns(first, columnsBefore(unit, unit.slice() + 1) - first);
    }

    /** Columns of the first slices of a sequence of a unit's micro-batch. */
    private int columnsBefore(WorkUnit unit, int slice) {
        int before = 0;
        for (int earlier = 0; earlier < slice; earlier++) {
            var part = new WorkUnit(unit.stage(), unit.microBatch(), earlier);
            before += stage.boundaryRows(part) * stage.boundaryColumns() / sequences();
        }
        return before;
    }

    private Tensor bySequences(Tensor unit) {
        return CodingState.bySequences(unit, sequences());
    }

    private int sequences() {
        return stage.boundarySequences();
    }
}
