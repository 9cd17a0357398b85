package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import jdk.incubator.vector.FloatVector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the compiler must not change, and what it must optimise. */
class CompilationTest {
    private static final int HOT = 100;

    /** Vectors that the processor does not have are made of many calls, which are hot sooner. */
    private static final int HOT_WITHOUT_VECTORS = 30;

    private static final int FEW_BYTES = 4096;

    @ParameterizedTest
    @ValueSource(ints = {512, 256})
    void bitsAreTheSameInterpretedAndCompiled(int vectorBits) throws Exception {
        List<String> interpreted = kernelBits("-Xint", 1, vectorBits);

        assertThat(interpreted).hasSizeBetween(4, 8).allMatch(line -> line.contains("d head="));
        assertThat(kernelBits("-XX:TieredStopAtLevel=1", 3, vectorBits)).isEqualTo(interpreted);
        boolean hasVectors = FloatVector.SPECIES_PREFERRED.vectorBitSize() >= vectorBits;
        int runs = hasVectors ? HOT : HOT_WITHOUT_VECTORS;
        assertThat(kernelBits("-XX:+TieredCompilation", runs, vectorBits)).isEqualTo(interpreted);
    }

    private static List<String> kernelBits(String flag, int runs, int vectorBits) throws Exception {
        return OtherJvm.run(List.of(flag), KernelBits.class, runs, vectorBits);
    }

    /**
     * A vector that becomes an object costs 80 bytes each time: megabytes for a whole kernel. The
     * compiler does not work in the background, so what it inlines does not depend on timing.
     */
    @Test
    void compiledKernelsAllocateNextToNothing() throws Exception {
        List<String> lines = OtherJvm.run(List.of("-Xbatch"), KernelAllocations.class, FEW_BYTES);

        assertThat(lines).hasSize(61);
        assertThat(lines)
                .allSatisfy(
                        line -> {
                            String bytes = line.substring(line.lastIndexOf(' ') + 1);
                            assertThat(Long.parseLong(bytes))
                                    .as(line)
                                    .isLessThanOrEqualTo(FEW_BYTES);
                        });
    }
}
