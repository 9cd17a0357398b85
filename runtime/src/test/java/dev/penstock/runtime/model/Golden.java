package dev.penstock.runtime.model;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The golden run of a tiny GPT-2, computed by PyTorch in double precision. */
public final class Golden implements AutoCloseable {
    static final int SEQUENCES = 4;
    static final int CONTEXT = 16;

    private final String variant;
    private final SafetensorsFile tokens = open("tokens.safetensors");
    private final SafetensorsFile initial;
    private final JsonNode expected;

    public Golden(boolean tied) {
        variant = tied ? "tied" : "untied";
        initial = open(variant + ".init.safetensors");
        try {
            expected = new ObjectMapper().readTree(path(variant + ".expected.json").toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public ModelShape shape() {
        return ModelShape.gpt2(64, CONTEXT, 32, 2, 4, variant.equals("tied"));
    }

    public ParameterSource initial() {
        return (name, piece, destination) -> {
            initial.find(name).ifPresent(tensor -> tensor.copyTo(piece, destination));
            return initial.find(name).isPresent();
        };
    }

    /** Micro-batch m of step s is the golden batch's sequences from {@code m * sequences} on. */
    public BatchSource batches(int sequences) {
        StoredTensor all = tokens.tensor("tokens");
        int row = CONTEXT + 1;
        return (StepKind kind, long step, int microBatch, int[] into) -> {
            long first = ((step - 1) * SEQUENCES + (long) microBatch * sequences) * row;
            for (int i = 0; i < sequences * row; i++) {
                into[i] = (int) all.integer(first + i);
            }
        };
    }

    public List<Double> numbers(String key) {
        List<Double> numbers = new ArrayList<>();
        expected.get(key).forEach(n -> numbers.add(n.asDouble()));
        return numbers;
    }

    public Map<String, double[]> firstGradients() {
        return tensors(variant + ".grad1.safetensors");
    }

    Map<String, double[]> finalWeights() {
        return tensors(variant + ".final.safetensors");
    }

    private static Map<String, double[]> tensors(String file) {
        Map<String, double[]> all = new LinkedHashMap<>();
        try (SafetensorsFile opened = open(file)) {
            for (StoredTensor t : opened.tensors()) {
                double[] values = new double[Math.toIntExact(t.elements())];
                for (int i = 0; i < values.length; i++) {
                    values[i] = t.real(i);
                }
                all.put(t.name(), values);
            }
        }
        return all;
    }

    private static SafetensorsFile open(String name) {
        return SafetensorsFile.open(path(name));
    }

    private static Path path(String name) {
        URL url = Objects.requireNonNull(Golden.class.getResource("/golden/" + name), name);
        try {
            return Path.of(url.toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        initial.close();
        tokens.close();
    }
}
