package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.checkpoint.SafetensorsFile;
import dev.penstock.runtime.checkpoint.StoredTensor;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.ScheduleKind;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
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
    private static final double LOSS_TOLERANCE = 2e-4;
    private static final double GRADIENT_TOLERANCE = 1e-5;

    /** In the words of the configuration. */
    private enum Order {
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
    void lossesAndFirstGradientsArePyTorchs(Order order, int stages, boolean tied)
            throws IOException {
        Path gradients = folder.resolve("gradients.safetensors");

        Trained trained =
                Training.golden(folder, tied)
                        .set("pipeline.stages=" + stages, "schedule={" + order.words + "}")
                        .option("--dump-gradients", "1:" + gradients)
                        .complete();

        expectNear(trained.losses(), expected(tied, "loss_fp64_accum4"));
        expectFirstGradients(gradients, tied);
    }

    static List<String> families() {
        return Generators.kinds();
    }

    /** Two stages on each rank where the family allows it; the first and the last are small. */
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

        expectNear(trained.losses(), expected(tied, "loss_fp64_accum4"));
        expectFirstGradients(gradients, tied);
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

        expectNear(trained.losses(), expected(tied, "loss_fp64_clip0_5"));
        List<Double> norms = expected(tied, "grad_norm_preclip_fp64");
        assertThat(trained.gradientNorms()).hasSameSizeAs(norms);
        assertThat(trained.gradientNorms().getFirst())
                .isCloseTo(norms.getFirst(), within(1e-5 * norms.getFirst()));
    }

    private static void expectNear(List<Double> actual, List<Double> expected) {
        assertThat(actual).hasSameSizeAs(expected);
        for (int step = 0; step < expected.size(); step++) {
            assertThat(actual.get(step))
                    .as("loss of step %d", step + 1)
                    .isCloseTo(expected.get(step), within(LOSS_TOLERANCE));
        }
    }

    private static void expectFirstGradients(Path dumped, boolean tied) {
        Path truth = Training.golden((tied ? "tied" : "untied") + ".grad1.safetensors");
        try (SafetensorsFile expected = SafetensorsFile.open(truth);
                SafetensorsFile actual = SafetensorsFile.open(dumped)) {
            assertThat(names(actual)).containsExactlyInAnyOrderElementsOf(names(expected));
            for (StoredTensor tensor : expected.tensors()) {
                assertThat(distance(actual.tensor(tensor.name()), tensor))
                        .as("relative distance of the gradient of %s", tensor.name())
                        .isLessThan(GRADIENT_TOLERANCE);
            }
        }
    }

    private static List<String> names(SafetensorsFile file) {
        return file.tensors().stream().map(StoredTensor::name).toList();
    }

    /** Of the difference's L2 norm to the truth's. */
    private static double distance(StoredTensor actual, StoredTensor truth) {
        assertThat(actual.shape()).as(truth.name()).isEqualTo(truth.shape());
        double difference = 0;
        double size = 0;
        for (long i = 0; i < truth.elements(); i++) {
            double d = actual.real(i) - truth.real(i);
            difference += d * d;
            size += truth.real(i) * truth.real(i);
        }
        return Math.sqrt(difference / size);
    }

    private static List<Double> expected(boolean tied, String key) throws IOException {
        Path file = Training.golden((tied ? "tied" : "untied") + ".expected.json");
        JsonNode json = new ObjectMapper().readTree(file.toFile());
        List<Double> numbers = new ArrayList<>();
        json.get(key).forEach(n -> numbers.add(n.asDouble()));
        return numbers;
    }
}
