package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Rows of a unit whose logits exist at the same time: adjacent rows that hold whole blocks of the
 * reduction grid. Where products keep to the grid, the chunks, one after the other, add up in the
 * order of the unit's blocks.
 *
 * @param firstRow in the unit
 * @param firstSequence in the micro-batch
 * @param blocks the rows as a unit of their own
 */
public record HeadChunk(int firstRow, int firstSequence, TokenBlocks blocks) {

    /**
     * Cuts a unit into chunks.
     *
     * @param mostRows room for logits, at least one block of the grid
     */
    public static List<HeadChunk> of(TokenBlocks unit, int mostRows, LogitsRoom room) {
        boolean anyOrder = unit.blocksPerSequence() == 1 || !room.inGridOrder();
        if (anyOrder && (unit.tokens() <= mostRows || unit.blocksPerSequence() == 1)) {
            return bySequences(unit, Math.max(1, mostRows / unit.tokens()));
        }
        if (anyOrder || unit.sequences() == 1) {
            return IntStream.range(0, unit.sequences())
                    .mapToObj(sequence -> byTokens(unit, sequence, mostRows))
                    .flatMap(List::stream)
                    .toList();
        }
        return byBlocks(unit);
    }

    /**
     * Cuts a unit whose blocks are whole runs of a sequence: several sequences at a time,
     * ascending.
     */
    private static List<HeadChunk> bySequences(TokenBlocks unit, int mostSequences) {
        List<HeadChunk> chunks = new ArrayList<>();
        for (int first = 0; first < unit.sequences(); first += mostSequences) {
            int count = Math.min(mostSequences, unit.sequences() - first);
            chunks.add(
                    new HeadChunk(
                            first * unit.tokens(),
                            first,
                            new TokenBlocks(count, unit.tokens(), unit.firstToken(), unit.grid())));
        }
        return chunks;
    }

    /** Cuts one sequence: several blocks at a time, from the last. */
    private static List<HeadChunk> byTokens(TokenBlocks unit, int sequence, int mostRows) {
        List<HeadChunk> chunks = new ArrayList<>();
        int end = (sequence + 1) * unit.tokens();
        int rows = 0;
        for (int i = sequence; i < unit.count(); i += unit.sequences()) {
            if (rows > 0 && rows + unit.rowsOf(i) > mostRows) {
                chunks.add(ofOneSequence(unit, end - rows, rows));
                end -= rows;
                rows = 0;
            }
            rows += unit.rowsOf(i);
        }
        chunks.add(ofOneSequence(unit, end - rows, rows));
        return chunks;
    }

    /** Cuts a unit in which blocks of different sequences alternate: one block at a time. */
    private static List<HeadChunk> byBlocks(TokenBlocks unit) {
        List<HeadChunk> chunks = new ArrayList<>();
        for (int i = 0; i < unit.count(); i++) {
            chunks.add(ofOneSequence(unit, unit.firstRow(i), unit.rowsOf(i)));
        }
        return chunks;
    }

    private static HeadChunk ofOneSequence(TokenBlocks unit, int firstRow, int rows) {
        int sequence = firstRow / unit.tokens();
        int firstToken = unit.firstToken() + firstRow % unit.tokens();
        return new HeadChunk(firstRow, sequence, new TokenBlocks(1, rows, firstToken, unit.grid()));
    }

    public int rows() {
        return blocks.rows();
    }

    /** Returns the chunk's rows of a tensor of the unit. */
    public Tensor of(Tensor unit) {
        return unit.rows(firstRow, rows());
    }
}
