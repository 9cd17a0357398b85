package dev.penstock.runtime.model;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** The golden run of an adapter on the weights of the golden Llama. */
public final class GoldenAdapter {
    static final int STEPS = 12;

    private final GoldenFamily base = new GoldenFamily("llama");
    private final Path folder = base.folder().resolveSibling("lora");
    private final JsonNode expected;
    private final long[] tokens;
    private final Map<String, float[]> initial;

    public GoldenAdapter() {
        try {
            expected = new ObjectMapper().readTree(folder.resolve("expected.json").toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        try (SafetensorsFile file = SafetensorsFile.open(folder.resolve("tokens.safetensors"))) {
            StoredTensor all = file.tensor("tokens");
            tokens = new long[Math.toIntExact(all.elements())];
            for (int i = 0; i < tokens.length; i++) {
                tokens[i] = all.integer(i);
            }
        }
        initial = parameters("adapter_model.safetensors");
    }

    public GoldenFamily base() {
        return base;
    }

    /** The folder of the adapter, as PEFT writes it. */
    public Path folder() {
        return folder;
    }

    public ModelConfig config() {
        return base.config().training(fineTuning());
    }

    public FineTuning fineTuning() {
        return new FineTuning(Optional.of(adapters()), List.of());
    }

    public Adapters adapters() {
        return new Adapters(
                4,
                8,
                AdapterParts.places(
                        base.config().family(), base.shape(), List.of("q_proj", "v_proj")));
    }

    /** The weights of the Llama and of the adapter. */
    public ParameterSource initial() {
        ParameterSource frozen = base.initial();
        return (name, piece, destination) -> {
            float[] whole = initial.get(name);
            if (whole == null) {
                return frozen.fill(name, piece, destination);
            }
            piece.extract(MemorySegment.ofArray(whole), destination);
            return true;
        };
    }

    public BatchSource batches(int sequences) {
        int row = GoldenFamily.CONTEXT + 1;
        return (_, step, microBatch, into) -> {
            long first =
                    ((step - 1) * GoldenFamily.SEQUENCES + (long) microBatch * sequences) * row;
            for (int i = 0; i < sequences * row; i++) {
                into[i] = (int) tokens[Math.toIntExact(first + i)];
            }
        };
    }

    List<Double> numbers(String key) {
        List<Double> numbers = new ArrayList<>();
        expected.get(key).forEach(n -> numbers.add(n.asDouble()));
        return numbers;
    }

    Map<String, float[]> firstGradients() {
        return parameters("grad1.safetensors");
    }

    Map<String, float[]> last() {
        return parameters("final.safetensors");
    }

    /** The tensors of a file as Penstock's parameters, turned here element by element. */
    private Map<String, float[]> parameters(String file) {
        Map<String, float[]> all = new LinkedHashMap<>();
        try (SafetensorsFile opened = SafetensorsFile.open(folder.resolve(file))) {
            for (StoredPart part :
                    AdapterParts.of(base.config().family(), base.shape(), adapters())) {
                StoredTensor stored = Objects.requireNonNull(opened.tensor(part.name()));
                int rows = stored.shape().getFirst();
                int columns = stored.shape().getLast();
                float[] values = new float[rows * columns];
                for (int i = 0; i < rows; i++) {
                    for (int j = 0; j < columns; j++) {
                        values[j * rows + i] = (float) stored.real((long) i * columns + j);
                    }
                }
                all.put(part.parameter(), values);
            }
        }
        return all;
    }
}
