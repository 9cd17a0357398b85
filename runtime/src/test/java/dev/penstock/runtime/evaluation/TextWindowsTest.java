package dev.penstock.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class TextWindowsTest {
    @Test
    void everyTokenButTheFirstIsATargetOnceAndTheLastWindowIsShort() {
        for (int size = 0; size < 40; size++) {
            int[] row = IntStream.range(0, size).toArray();
            for (int context = 1; context < 12; context++) {
                for (int stride = 1; stride <= context; stride++) {
                    assertThat(targets(TextWindows.overlapping(row, context, stride)))
                            .isEqualTo(IntStream.range(1, Math.max(1, size)).boxed().toList());
                }
                assertThat(targets(TextWindows.rolling(row, context)))
                        .isEqualTo(IntStream.range(1, Math.max(1, size)).boxed().toList());
            }
        }
    }

    private static List<Integer> targets(List<Window> windows) {
        List<Integer> targets = new ArrayList<>();
        for (Window window : windows) {
            for (int i = window.count() - window.targets(); i < window.count(); i++) {
                targets.add(window.token(i));
            }
        }
        return targets;
    }

    @Test
    void overlappingWindowsCountTheirLastPlaces() {
        int[] row = IntStream.range(0, 8).toArray();

        assertThat(TextWindows.overlapping(row, 4, 2))
                .containsExactly(
                        new Window(row, 0, 5, 4),
                        new Window(row, 2, 5, 2),
                        new Window(row, 4, 4, 1));
    }

    @Test
    void theLastRollingWindowIsWhole() {
        int[] row = IntStream.range(0, 7).toArray();

        assertThat(TextWindows.rolling(row, 4))
                .containsExactly(new Window(row, 0, 5, 4), new Window(row, 2, 5, 2));
    }

    @Test
    void ofATextThatIsTooLongTheEndIsRead() {
        Window window = TextWindows.ending(new int[] {1, 2, 3, 4}, new int[] {5, 6}, 3).getFirst();

        assertThat(window.inputs()).isEqualTo(3);
        assertThat(window.token(0)).isEqualTo(3);
        assertThat(window.targets()).isEqualTo(2);
        assertThat(TextWindows.ending(new int[0], new int[] {5}, 3)).isEmpty();
        assertThat(TextWindows.ending(new int[0], new int[] {5, 6}, 3).getFirst().targets())
                .isEqualTo(1);
    }
}
