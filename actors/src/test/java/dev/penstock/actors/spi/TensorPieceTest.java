package dev.penstock.actors.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.TensorPiece.Strip;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TensorPieceTest {
    private final float[] whole = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

    @Test
    void stripsLieSideBySide() {
        var piece =
                TensorPiece.strips(
                        List.of(2, 6), List.of(new Strip(0, 2, 1, 2), new Strip(0, 2, 4, 2)));
        assertThat(extract(piece)).containsExactly(1, 2, 4, 5, 7, 8, 10, 11);
        assertThat(extract(piece.stretch(2, 5))).containsExactly(4, 5, 7);
        assertThat(extract(piece.stretch(2, 5).stretch(1, 2))).containsExactly(5);
        assertThat(piece.isWhole()).isFalse();
    }

    @Test
    void rowsAreAStrip() {
        var piece = TensorPiece.strips(List.of(3, 4), List.of(new Strip(1, 2, 0, 4)));
        assertThat(extract(piece)).containsExactly(4, 5, 6, 7, 8, 9, 10, 11);
    }

    @Test
    void allOfAVectorIsWhole() {
        var piece = TensorPiece.all(List.of(12));
        assertThat(piece.isWhole()).isTrue();
        assertThat(extract(piece)).isEqualTo(whole);
        assertThat(piece.stretch(3, 5).isWhole()).isFalse();
    }

    @Test
    void piecesMakeTheWholeAgain() {
        var shape = List.of(2, 6);
        var left = TensorPiece.strips(shape, List.of(new Strip(0, 2, 0, 2)));
        var right = TensorPiece.strips(shape, List.of(new Strip(0, 2, 2, 4)));
        float[] again = new float[12];
        for (var piece :
                List.of(left, right.stretch(0, 3), right.stretch(3, 3), right.stretch(3, 8))) {
            piece.insert(MemorySegment.ofArray(extract(piece)), MemorySegment.ofArray(again));
        }
        assertThat(again).isEqualTo(whole);
    }

    @Test
    void whatLiesTogetherIsOneRun() {
        var wide = TensorPiece.strips(List.of(3, 4), List.of(new Strip(1, 2, 0, 4)));
        var parted =
                TensorPiece.strips(
                        List.of(2, 6), List.of(new Strip(0, 2, 0, 2), new Strip(0, 2, 4, 2)));

        assertThat(runs(wide.stretch(1, 7))).containsExactly("5 0 6");
        assertThat(runs(parted)).containsExactly("0 0 2", "4 2 4", "10 6 2");
        assertThat(runs(parted.stretch(3, 3))).isEmpty();
    }

    private static List<String> runs(TensorPiece piece) {
        List<String> runs = new ArrayList<>();
        piece.walk((inWhole, inPiece, count) -> runs.add(inWhole + " " + inPiece + " " + count));
        return runs;
    }

    @Test
    void whatIsNotThereIsNoPiece() {
        assertThatThrownBy(() -> TensorPiece.all(List.of(4)).stretch(2, 5))
                .hasMessageContaining("2 to 5");
    }

    private float[] extract(TensorPiece piece) {
        MemorySegment out = MemorySegment.ofArray(new float[(int) piece.elements()]);
        piece.extract(MemorySegment.ofArray(whole), out);
        return out.toArray(ValueLayout.JAVA_FLOAT);
    }
}
