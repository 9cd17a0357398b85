package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.model.shape.PartTokens.Run;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PartTokensTest {
    private static final BatchShape SLICED = new BatchShape(1, 1, List.of(24, 12, 36), 128);

    private static List<Integer> sequence(PartTokens held) {
        List<Integer> tokens = new ArrayList<>();
        for (Run run : held.runs()) {
            assertThat(run.firstHere()).isEqualTo(tokens.size());
            IntStream.range(run.first(), run.first() + run.tokens()).forEach(tokens::add);
        }
        return tokens;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 6, 12})
    void everyTokenIsHeldOnceAndTheOrderIsThatOfTheSequence(int parts) {
        List<Integer> all = new ArrayList<>();
        for (int part = 0; part < parts; part++) {
            List<Integer> held = sequence(PartTokens.of(SLICED, parts, part));
            assertThat(held).hasSize(72 / parts).isSorted();
            for (int slice = 0; slice < 3; slice++) {
                int first = SLICED.firstToken(slice);
                int end = SLICED.firstToken(slice + 1);
                assertThat(held.stream().filter(t -> t >= first && t < end))
                        .hasSize((end - first) / parts);
            }
            all.addAll(held);
        }
        assertThat(all).doesNotHaveDuplicates().hasSize(72);
    }

    /** A token at position t attends to t + 1 keys. */
    @ParameterizedTest
    @ValueSource(ints = {2, 4, 8})
    void allPartsAttendToAsManyKeys(int parts) {
        var whole = BatchShape.unsliced(1, 1, 64, 128);
        List<Integer> keys =
                IntStream.range(0, parts)
                        .mapToObj(part -> sequence(PartTokens.of(whole, parts, part)))
                        .map(held -> held.stream().mapToInt(t -> t + 1).sum())
                        .toList();

        assertThat(keys).containsOnly(64 * 65 / 2 / parts);
    }

    @Test
    void someOfAPartsTokensAreFoundInTheSequence() {
        var held = PartTokens.of(BatchShape.unsliced(1, 1, 8, 8), 2, 0);

        assertThat(held.runs()).containsExactly(new Run(0, 0, 2), new Run(2, 6, 2));
        assertThat(held.of(1, 2)).containsExactly(new Run(1, 1, 1), new Run(2, 6, 1));
        assertThat(held.of(2, 1)).containsExactly(new Run(2, 6, 1));
    }
}
