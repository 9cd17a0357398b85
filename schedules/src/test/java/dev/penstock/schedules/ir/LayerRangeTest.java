package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class LayerRangeTest {
    @Test
    void aRangeContainsWhatLiesInIt() {
        var range = new LayerRange(2, 4);

        assertThat(range.contains(new LayerRange(2, 4))).isTrue();
        assertThat(range.contains(new LayerRange(3, 3))).isTrue();
        assertThat(range.contains(new LayerRange(1, 4))).isFalse();
        assertThat(range.contains(new LayerRange(2, 5))).isFalse();
        assertThat(LayerRange.ALL.contains(range)).isTrue();
        assertThat(range.isAll()).isFalse();
    }

    @Test
    void layersAreCountedFromZeroAndRise() {
        assertThat(new LayerRange(0, 0)).isNotNull();
        assertThatThrownBy(() -> new LayerRange(-1, 0)).hasMessageContaining("got -1 to 0");
        assertThatThrownBy(() -> new LayerRange(2, 1)).hasMessageContaining("got 2 to 1");
    }
}
