package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** PyTorch's results for the golden run in double precision. */
public final class GoldenTruth {
    private static final double LOSS_TOLERANCE = 2e-4;
    private static final double GRADIENT_TOLERANCE = 1e-5;

    private GoldenTruth() {}

    /** Expects as many losses as the run has steps. */
    public static void expectLosses(Trained trained, boolean tied, String key) throws IOException {
        List<Double> actual = trained.losses();
        List<Double> expected = of(tied, key);
        assertThat(actual).isNotEmpty().hasSizeLessThanOrEqualTo(expected.size());
        for (int step = 0; step < actual.size(); step++) {
            assertThat(actual.get(step))
                    .as("loss of step %d", step + 1)
                    .isCloseTo(expected.get(step), within(LOSS_TOLERANCE));
        }
    }

    /** Expects the gradients of step 1, each within the tolerance relative to its norm. */
    public static void expectFirstGradients(Path dumped, boolean tied) {
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

    /** Returns the L2 norm of the difference relative to the truth's. */
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

    /** The numbers of a run in double precision. */
    public static List<Double> of(boolean tied, String key) throws IOException {
        Path file = Training.golden((tied ? "tied" : "untied") + ".expected.json");
        JsonNode json = new ObjectMapper().readTree(file.toFile());
        List<Double> numbers = new ArrayList<>();
        json.get(key).forEach(n -> numbers.add(n.asDouble()));
        return numbers;
    }
}
