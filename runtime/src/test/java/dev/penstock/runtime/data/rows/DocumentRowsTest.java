package dev.penstock.runtime.data.rows;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class DocumentRowsTest {
    /** Documents begin at 3, 9, 10 and 30 of 40 tokens. */
    private static DocumentRows rows(long from, long to) {
        Set<Long> borders = Set.of(3L, 9L, 10L, 30L);
        return DocumentRows.of(borders::contains, from, to, 8);
    }

    @Test
    void aDocumentIsARowAndALongOneSeveral() {
        DocumentRows rows = rows(0, 40);

        assertThat(starts(rows)).containsExactly(0, 3, 10, 18, 26, 30, 38);
        assertThat(lengths(rows)).containsExactly(2, 5, 8, 8, 3, 8, 1);
        assertThat(rows.tokens()).isEqualTo(35);
    }

    @Test
    void aStretchHasOnlyItsOwnTokens() {
        assertThat(starts(rows(0, 12))).containsExactly(0, 3, 10);
        assertThat(lengths(rows(0, 12))).containsExactly(2, 5, 1);
        assertThat(starts(rows(12, 40))).containsExactly(12, 20, 28, 30, 38);
        assertThat(lengths(rows(12, 40))).containsExactly(8, 8, 1, 8, 1);
        assertThat(rows(9, 10).count()).isZero();
    }

    @Test
    void anEpochHasEveryRowOnceAndTheNextAnotherOrder() {
        DocumentRows rows = rows(0, 40);
        List<Integer> first = drawn(rows, 0);

        assertThat(first).containsExactlyInAnyOrder(0, 1, 2, 3, 4, 5, 6);
        assertThat(drawn(rows, 7)).containsExactlyInAnyOrderElementsOf(first).isNotEqualTo(first);
    }

    private static List<Integer> drawn(DocumentRows rows, long from) {
        return LongStream.range(from, from + rows.count())
                .mapToObj(sequence -> rows.drawn(sequence, 4))
                .toList();
    }

    private static List<Integer> starts(DocumentRows rows) {
        return IntStream.range(0, rows.count()).mapToObj(i -> (int) rows.start(i)).toList();
    }

    private static List<Integer> lengths(DocumentRows rows) {
        return IntStream.range(0, rows.count()).mapToObj(rows::length).toList();
    }
}
