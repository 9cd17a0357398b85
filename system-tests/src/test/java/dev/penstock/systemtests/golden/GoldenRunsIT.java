package dev.penstock.systemtests.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.systemtests.support.GoldenTruth;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The whole program, from a configuration file through actors and Aeron to its metrics, repeats
 * what PyTorch computed in double precision.
 */
class GoldenRunsIT {
    /** The orders, in the syntax of the configuration. */
    enum Order {
        ONE_FORWARD_ONE_BACKWARD("kind = 1f1b"),
        GPIPE_FIFO("kind = gpipe, backward = fifo"),
        GPIPE_REVERSE("kind = gpipe, backward = reverse"),
        TERAPIPE_SLICED("kind = terapipe, slice-lengths = [8, 8]"),
        SEQ1F1B_SLICED("kind = seq1f1b, slice-lengths = [8, 8]"),
        SEQ1F1B_OFF_THE_GRID("kind = seq1f1b, slice-lengths = [7, 5, 4]");

        private final String words;

        Order(String words) {
            this.words = words;
        }
    }

    @TempDir Path folder;

    static Stream<Arguments> runs() {
        return Stream.of(Order.values())
                .flatMap(
                        order ->
                                Stream.of(1, 2, 3)
                                        .flatMap(
                                                stages ->
                                                        Stream.of(
                                                                Arguments.of(order, stages, true),
                                                                Arguments.of(
                                                                        order, stages, false))));
    }

    @ParameterizedTest(name = "{0}, {1} stages, tied {2}")
    @MethodSource("runs")
    void lossesAndFirstGradientsEqualPyTorchs(Order order, int stages, boolean tied)
            throws IOException {
        Path gradients = folder.resolve("gradients.safetensors");

        Trained trained =
                Training.golden(folder, tied)
                        .set("pipeline.stages=" + stages, "schedule={" + order.words + "}")
                        .option("--dump-gradients", "1:" + gradients)
                        .complete();

        GoldenTruth.expectLosses(trained, tied, "loss_fp64_accum4");
        GoldenTruth.expectFirstGradients(gradients, tied);
    }

    static List<String> families() {
        return Generators.kinds();
    }

    /**
     * Two stages on each rank where the family allows it; the first and the last stage are small.
     */
    @ParameterizedTest
    @MethodSource("families")
    void everyFamilyHasPyTorchsLossesAndFirstGradients(String kind) throws IOException {
        boolean tied = kind.length() % 2 == 0;
        int chunks = Generators.kind(kind).chunks() == ScheduleKind.Chunks.ONE ? 1 : 2;
        Path gradients = folder.resolve("gradients.safetensors");

        Trained trained =
                Training.golden(folder, tied)
                        .set(
                                "pipeline={stages=2, chunks=%d}".formatted(chunks),
                                "schedule={kind=%s, slices=%d}"
                                        .formatted(kind, Generators.kind(kind).sliced() ? 2 : 1))
                        .option("--dump-gradients", "1:" + gradients)
                        .complete();

        GoldenTruth.expectLosses(trained, tied, "loss_fp64_accum4");
        GoldenTruth.expectFirstGradients(gradients, tied);
    }

    @ParameterizedTest(name = "{0}, {1} stages, tied {2}")
    @MethodSource("runs")
    void clippedRunsHavePyTorchsLossesAndNorms(Order order, int stages, boolean tied)
            throws IOException {
        Trained trained =
                Training.golden(folder, tied)
                        .set("pipeline.stages=" + stages, "schedule={" + order.words + "}")
                        .set("optimizer.clip-norm=0.5")
                        .complete();

        GoldenTruth.expectLosses(trained, tied, "loss_fp64_clip0_5");
        List<Double> norms = GoldenTruth.of(tied, "grad_norm_preclip_fp64");
        assertThat(trained.gradientNorms()).hasSameSizeAs(norms);
        assertThat(trained.gradientNorms().getFirst())
                .isCloseTo(norms.getFirst(), within(1e-5 * norms.getFirst()));
    }
}
