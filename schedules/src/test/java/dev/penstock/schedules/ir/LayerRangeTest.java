package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class LayerRangeTest {
    @Test
    void someLayersAreNotAll() {
        assertThat(new LayerRange(2, 4).isAll()).isFalse();
        assertThat(LayerRange.ALL.isAll()).isTrue();
    }

    @Test
    void layersAreCountedFromZeroAndRise() {
        assertThat(new LayerRange(0, 0)).isNotNull();
        assertThatThrownBy(() -> new LayerRange(-1, 0)).hasMessageContaining("got -1 to 0");
        assertThatThrownBy(() -> new LayerRange(2, 1)).hasMessageContaining("got 2 to 1");
    }
}
