package dev.penstock.schedules.generate.vshaped;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The pictures of the Javadoc are those of the schedules. */
class VPicturesTest {

    @Test
    void zeroBubbleVTurnsRoundOnTheFirstRank() {
        assertThat(VPicture.of(ZeroBubbleV.schedule(VSchedules.shape(2, 4))))
                .isEqualTo(
                        """
                        rank 0 | F0 F1 F2 f0 i0 w0 f1 i1 w1 F3 I0 W0 f2 i2 w2 I1 W1 f3 i3 w3 I2 W2 I3 W3
                        rank 1 |    F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 F3 I1 W1 f3 i2 w2 I2 i3 I3 W2 w3 W3
                        """);
    }

    @Test
    void zeroBubbleVOfFewMicroBatchesLeavesOutWhatIsTooMuch() {
        assertThat(VPicture.of(ZeroBubbleV.schedule(VSchedules.shape(3, 2))))
                .isEqualTo(
                        """
                        rank 0 | F0 F1          f0 i0 w0 f1 i1 w1       I0 W0    I1 W1
                        rank 1 |    F0 F1    f0    f1 i0 w0    i1 w1 I0 W0    I1 W1
                        rank 2 |       F0 f0 F1 f1       i0 w0 I0 W0 i1 w1 I1 W1
                        """);
    }

    @Test
    void vHalfFillsTheWayInAndPutsOffWeights() {
        assertThat(VPicture.of(VSchedules.half(VSchedules.shape(4, 4))))
                .isEqualTo(
                        """
                        rank 0 | F0 F1 F2 F3          f0 i0 f1 i1 w0 f2 i2 w1 I0 w2 W0    f3 i3 I1 w3 I2 W1 W2    I3 W3
                        rank 1 |    F0 F1 F2 F3    f0    f1 i0 w0 f2 i1 w1 I0 i2 W0 w2 f3    I1 i3 I2 W1 w3 W2 I3 W3
                        rank 2 |       F0 F1 F2 f0    f1    f2 i0 w0 F3 I0 i1 W0 w1 f3 i2 I1 w2 I2 i3 W1 W2 I3 w3 W3
                        rank 3 |          F0 f0 F1 f1 F2 f2       i0 I0 w0 F3 W0 f3 i1 I1 i2 I2 w1 W1 i3 I3 w2 W2 w3 W3
                        """);
    }

    @Test
    void vMinKeepsTheBlocksApart() {
        assertThat(VPicture.of(VSchedules.min(VSchedules.shape(4, 3))))
                .isEqualTo(
                        """
                        rank 0 | F0 F1 F2             f0 i0 w0 f1 i1 w1       I0 W0       f2 i2 I1 w2 W1          I2 W2
                        rank 1 |    F0 F1          f0    f1 i0 w0 F2 i1 w1 I0 W0       f2    I1 i2 W1 w2       I2 W2
                        rank 2 |       F0 F1    f0    f1       i0 w0 F2 I0 i1 W0 w1 f2    I1 W1    i2 w2    I2 W2
                        rank 3 |          F0 f0 F1 f1             i0 I0 w0 F2 W0 f2 i1 I1 w1 W1       i2 I2 w2 W2
                        """);
    }

    @Test
    void dualPipeVOverlapsInTheMiddle() {
        assertThat(VPicture.of(DualPipeV.schedule(VSchedules.shape(2, 4))))
                .isEqualTo(
                        """
                        rank 0 | F0 F1 F2 f0 i0 w0 f1 F3+b1       f2+B0    b2       f3+B1    b3    I2 W2 I3 W3
                        rank 1 |    F0 f0 F1 f1 F2 b0    f2+B0    F3+b1    f3+B1    b2    B2       i3 I3 w3 W3
                        """);
    }

    @Test
    void stpPairsForwardsWithWhatIsThere() {
        assertThat(VPicture.of(SynergisticTensorPipeline.schedule(VSchedules.shape(2, 5))))
                .isEqualTo(
                        """
                        rank 0 | F0 F1 F2 f0 F3 f1+i0 F4+w0    f2+b1    B0    f3+i2 B1    f4+i3 B2    b4    B3    w2 w3 B4
                        rank 1 |    F0 f0 F1 f1 F2+F3 f2+b0    F4+B0    f3+i1 B1    f4+i2 B2    b3    B3    b4    B4    w1 w2
                        """);
    }
}
