package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.device.TokenBlocks;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HeadChunkTest {
    @ParameterizedTest(name = "{0} sequences of {1} tokens from {2} on a grid of {3}, {4} rows")
    @CsvSource({
        "1, 16, 0, 4, 4, 4",
        "1, 16, 0, 4, 9, 2",
        "1, 16, 0, 4, 100, 1",
        "1, 10, 3, 4, 8, 2",
        "3, 4, 8, 4, 8, 2",
        "3, 4, 8, 4, 100, 1",
        "2, 8, 0, 4, 100, 4"
    })
    void chunksAddUpInTheOrderOfTheUnit(
            int sequences, int tokens, int firstToken, int grid, int mostRows, int expected) {
        TokenBlocks unit = new TokenBlocks(sequences, tokens, firstToken, grid);

        List<HeadChunk> chunks = HeadChunk.of(unit, mostRows, LogitsRoom.ON_GRID);

        assertThat(chunks).hasSize(expected).allMatch(chunk -> chunk.rows() <= mostRows);
        assertThat(chunks.stream().flatMap(c -> rows(c.blocks(), c.firstRow()).stream()))
                .containsExactlyElementsOf(rows(unit, 0));
        assertThat(chunks).allMatch(c -> c.firstSequence() == c.firstRow() / tokens);
    }

    @ParameterizedTest(name = "{0} sequences of {1} tokens from {2} on a grid of {3}, {4} rows")
    @CsvSource({
        "2, 8, 0, 4, 100, 1",
        "5, 8, 0, 4, 17, 3",
        "3, 10, 3, 4, 8, 6",
        "1, 16, 0, 4, 9, 2",
        "3, 4, 8, 4, 8, 2"
    })
    void chunksInAnyOrderHaveEachBlockOnce(
            int sequences, int tokens, int firstToken, int grid, int mostRows, int expected) {
        TokenBlocks unit = new TokenBlocks(sequences, tokens, firstToken, grid);

        List<HeadChunk> chunks = HeadChunk.of(unit, mostRows, LogitsRoom.IN_ANY_ORDER);

        assertThat(chunks).hasSize(expected).allMatch(chunk -> chunk.rows() <= mostRows);
        assertThat(chunks.stream().flatMap(c -> rows(c.blocks(), c.firstRow()).stream()))
                .containsExactlyInAnyOrderElementsOf(rows(unit, 0));
        assertThat(chunks).allMatch(c -> c.firstSequence() == c.firstRow() / tokens);
    }

    /** Each block's rows, in the order of summation. */
    private static List<List<Integer>> rows(TokenBlocks blocks, int firstRow) {
        List<List<Integer>> rows = new ArrayList<>();
        for (int i = 0; i < blocks.count(); i++) {
            rows.add(List.of(firstRow + blocks.firstRow(i), blocks.rowsOf(i)));
        }
        return rows;
    }
}
