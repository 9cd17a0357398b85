package dev.penstock.schedules.plan.work;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.plan.work.TensorMeshes.Layout;
import java.util.List;
import org.junit.jupiter.api.Test;

class TensorMeshesTest {
    private static final ModelShape MODEL = new ModelShape(24, 1024, 16, 51200, 512, true);

    private static Layout layout(int sequences, int ranks, String name) {
        List<Layout> all = TensorMeshes.of(MODEL, TrainingBytes.FP32, sequences);
        return all.stream()
                .filter(each -> each.ranks() == ranks && each.name().startsWith(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aMeshOfFourHoldsAQuarterOfOneDevice() {
        double n = 8 * 512;
        double h = 1024;

        Layout plane = layout(8, 4, "2d");

        assertThat(plane.keptBytes()).isCloseTo(4 * n * (5 + 12) * h / 4, within(1.0));
        assertThat(plane.sentBytes())
                .isCloseTo(4 * 3 * (1 / 4.0) * (7 * n * h + 12 * h * h), within(1.0));
        assertThat(layout(8, 4, "line").keptBytes())
                .isCloseTo(4 * n * (5 + 12 / 4.0) * h, within(1.0));
        assertThat(layout(8, 4, "line").sentBytes()).isCloseTo(4 * 6 * n * h, within(1.0));
    }

    /** A plane more has half of the rows, the same matrices, and their gradients to sum. */
    @Test
    void planesShareMatrices() {
        Layout layers = layout(8, 16, "2.5d");

        assertThat(layers.stateBytes()).isEqualTo(layout(8, 4, "2d").stateBytes());
        assertThat(layers.keptBytes()).isEqualTo(layout(8, 16, "2d").keptBytes());
        assertThat(layout(8, 64, "3d").stateBytes()).isEqualTo(layout(8, 64, "2d").stateBytes());
    }

    /** Of 4 p - 4 over p bsh and log2 p / (2 sqrt p) (7 bsh + 12 h^2). */
    @Test
    void aLineOfFourIsAlwaysFasterAndAPlaneOfSixtyFourSoon() {
        assertThat(TensorMeshes.rowsFrom(4)).isEmpty();
        assertThat(TensorMeshes.rowsFrom(16).orElseThrow()).isCloseTo(24, within(1e-9));
        assertThat(TensorMeshes.rowsFrom(64).orElseThrow()).isCloseTo(24 / 7.0, within(1e-9));
    }
}
