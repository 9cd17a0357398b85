package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.TinyRuns;
import java.util.List;
import org.junit.jupiter.api.Test;

class BatchShapeTest {
    private final BatchShape batch = new BatchShape(2, 3, List.of(10, 6), 128);

    @Test
    void unitsOfASliceKnowTheirPlace() {
        assertThat(batch.context()).isEqualTo(16);
        assertThat(batch.rows(1)).isEqualTo(12);
        assertThat(batch.largestRows()).isEqualTo(20);
        assertThat(batch.tokensPerStep()).isEqualTo(96);
        assertThat(batch.blocks(1)).isEqualTo(new TokenBlocks(2, 6, 10, 16));
    }

    @Test
    void settingsOfDifferentSizesAreRefused() {
        ModelShape shape = ModelShape.gpt2(10, 20, 8, 2, 2, true);

        assertThatThrownBy(() -> TinyRuns.settings(shape, 1, batch))
                .hasMessage("the slices [10, 6] hold 16 tokens, but the model's context is 20");
        assertThatThrownBy(() -> ModelShape.gpt2(10, 20, 8, 2, 3, true))
                .hasMessage(
                        "the width must be a multiple of the heads, got width 8 and 3 heads; try 2 heads");
        assertThatThrownBy(() -> new BatchShape(1, 1, List.of(4, 0), 1))
                .hasMessageContaining("[4, 0]");
    }
}
