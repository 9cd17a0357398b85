package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the compiler must not change, and what it must optimise. */
class CompilationTest {
    /**
     * A tenth of the usual calls make a method hot here, and the compiler is waited for: what is
     * compiled does not depend on how busy the machine is, and little runs before it is.
     */
    private static final List<String> SOON_OPTIMISED =
            List.of("-XX:+TieredCompilation", "-XX:CompileThresholdScaling=0.1", "-Xbatch");

    private static final int HOT = 12;

    private static final int FEW_BYTES = 4096;

    @ParameterizedTest
    @ValueSource(ints = {512, 256})
    void bitsAreTheSameInterpretedAndCompiled(int vectorBits) throws Exception {
        List<String> interpreted = kernelBits(List.of("-Xint"), 1, vectorBits);

        assertThat(interpreted).hasSizeBetween(4, 8).allMatch(line -> line.contains("d head="));
        assertThat(kernelBits(List.of("-XX:TieredStopAtLevel=1"), 3, vectorBits))
                .isEqualTo(interpreted);
        assertThat(kernelBits(SOON_OPTIMISED, HOT, vectorBits)).isEqualTo(interpreted);
    }

    private static List<String> kernelBits(List<String> flags, int runs, int vectorBits)
            throws Exception {
        return OtherJvm.run(flags, KernelBits.class, runs, vectorBits);
    }

    /** A vector that becomes an object costs 80 bytes each time: megabytes for a whole kernel. */
    @Test
    void compiledKernelsAllocateNextToNothing() throws Exception {
        List<String> lines = OtherJvm.run(List.of(), KernelAllocations.class, FEW_BYTES);

        assertThat(lines).hasSize(58);
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
