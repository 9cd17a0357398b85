package dev.penstock.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What {@link GpuBenchmark} tries again with fewer sequences. */
class GpuBenchmarkTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    device.memory-limit: expected at least 48,251,392 bytes for rank 0, got 4,194,304 bytes | true
                    toy: rank 0 (start): GPU 0 has 512 of its 4,096 bytes left; make the work smaller | true
                    toy: starting kernel add on GPU 0: the GPU is lost, the driver answers CUDA_ERROR_UNKNOWN | false
                    taking memory of GPU 0: the GPU is lost, the driver answers CUDA_ERROR_UNKNOWN | false
                    toy: rank 0 (step 1): a collective took more than 60 s | false
                    """)
    void onlyWhatDoesNotFitIsTriedWithFewerSequences(String reason, boolean again) {
        assertThat(GpuBenchmark.wantsMemory(reason)).isEqualTo(again);
    }
}
