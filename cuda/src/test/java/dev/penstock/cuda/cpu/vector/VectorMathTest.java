package dev.penstock.cuda.cpu.vector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;
import org.junit.jupiter.api.Test;

class VectorMathTest {
    private static final VectorSpecies<Float> LANES = FloatVector.SPECIES_256;

    @Test
    void aScalarExpHasTheBitsOfALane() {
        float[] some = {0, -0f, 1, -1, 90, -90, Float.MAX_VALUE, -Float.MAX_VALUE};

        assertSameBits(some);
        assertSameBits(new float[] {Float.NaN, 88.3f, -87.3f, 88.4f, -87.4f, 1e-9f, 0.5f, -0.3f});
        Random random = new Random(5);
        for (int i = 0; i < 1_000; i++) {
            for (int lane = 0; lane < some.length; lane++) {
                some[lane] = (float) (20 * random.nextGaussian());
            }
            assertSameBits(some);
        }
    }

    @Test
    void expIsExactToAFewParts() {
        for (float x = -87; x < 88; x += 0.37f) {
            double truth = Math.exp(x);

            assertThat(Math.abs(VectorMath.exp(x) - truth)).isLessThan(3e-7 * truth);
        }
    }

    private static void assertSameBits(float[] x) {
        float[] lanes = VectorMath.exp(FloatVector.fromArray(LANES, x, 0)).toArray();
        for (int i = 0; i < x.length; i++) {
            assertThat(Float.floatToIntBits(VectorMath.exp(x[i])))
                    .as("exp of %s", x[i])
                    .isEqualTo(Float.floatToIntBits(lanes[i]));
        }
    }
}
