package dev.penstock.runtime.model;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The golden run of a tiny model of a family, computed by PyTorch in double precision. */
public final class GoldenFamily {
    public static final int SEQUENCES = 4;
    public static final int CONTEXT = 16;
    static final int STEPS = 12;

    private final String name;
    private final ModelConfig config;
    private final long[] tokens;

    /** Places in documents, for each input, and targets; empty where rows are not packed. */
    private final long[] positions;

    private final long[] targets;

    /** Of each input, -100 where none counts; empty unless targets are in their place. */
    private final long[] labels;

    private final JsonNode expected;
    private final Map<String, float[]> initial = new LinkedHashMap<>();

    public GoldenFamily(String name) {
        this.name = name;
        config = ModelConfig.read(path("config.json"));
        try (SafetensorsFile file = open("tokens.safetensors")) {
            tokens = integers(file.tensor("tokens"));
            positions = file.find("positions").map(GoldenFamily::integers).orElse(new long[0]);
            labels = file.find("labels").map(GoldenFamily::integers).orElse(new long[0]);
            targets = file.find("targets").map(GoldenFamily::integers).orElse(new long[0]);
        }
        Map<String, double[]> stored = tensors("model.safetensors");
        for (StoredPart part : config.family().parts(shape())) {
            List<Integer> whole = Objects.requireNonNull(config.parameters().get(part.parameter()));
            int wide = whole.getLast();
            int size = whole.stream().reduce(1, (a, b) -> a * b);
            float[] into = initial.computeIfAbsent(part.parameter(), _ -> new float[size]);
            double[] from = Objects.requireNonNull(stored.get(part.name()), part.name());
            each(part, wide, (here, there) -> into[here] = (float) from[there]);
        }
        try {
            expected = new ObjectMapper().readTree(path("expected.json").toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long[] integers(StoredTensor stored) {
        long[] all = new long[Math.toIntExact(stored.elements())];
        for (int i = 0; i < all.length; i++) {
            all[i] = stored.integer(i);
        }
        return all;
    }

    /** Told of every element of a part: its index in the parameter and in the file's tensor. */
    private interface Elements {
        void at(int inParameter, int inFile);
    }

    private static void each(StoredPart part, int wide, Elements visitor) {
        for (int row = 0; row < part.rows(); row++) {
            for (int column = 0; column < part.columns(); column++) {
                visitor.at(
                        row * wide + part.firstColumn() + column,
                        part.transposed()
                                ? column * part.rows() + row
                                : row * part.columns() + column);
            }
        }
    }

    public ModelConfig config() {
        return config;
    }

    /** Of the run's sequences. */
    public ModelShape shape() {
        return config.shape().withContext(CONTEXT);
    }

    public ParameterSource initial() {
        return (parameter, piece, destination) -> {
            float[] whole = initial.get(parameter);
            if (whole != null) {
                piece.extract(MemorySegment.ofArray(whole), destination);
            }
            return whole != null;
        };
    }

    /** Micro-batch m of step s is the golden batch's sequences from {@code m * sequences} on. */
    public BatchSource batches(int sequences) {
        int row = CONTEXT + 1;
        return labels.length > 0 ? hidden(sequences) : next(sequences, row);
    }

    /** With a token at the end of each row that nobody reads. */
    private BatchSource hidden(int sequences) {
        int row = CONTEXT + 1;
        return new BatchSource() {
            private interface Each {
                void at(int index, int inFile);
            }

            private void each(long step, int microBatch, Each work) {
                long first = ((step - 1) * SEQUENCES + (long) microBatch * sequences) * CONTEXT;
                for (int b = 0; b < sequences; b++) {
                    for (int t = 0; t < CONTEXT; t++) {
                        work.at(b * row + t, Math.toIntExact(first + (long) b * CONTEXT + t));
                    }
                }
            }

            @Override
            public boolean inPlace() {
                return true;
            }

            @Override
            public boolean masked() {
                return true;
            }

            @Override
            public void read(StepKind kind, long step, int microBatch, int[] into) {
                each(step, microBatch, (i, at) -> into[i] = Math.max(0, (int) labels[at]));
            }

            @Override
            public void inputs(StepKind kind, long step, int microBatch, int[] into) {
                each(step, microBatch, (i, at) -> into[i] = (int) tokens[at]);
            }

            @Override
            public void marks(StepKind kind, long step, int microBatch, byte[] marks) {
                each(step, microBatch, (i, at) -> marks[i] = labels[at] < 0 ? UNCOUNTED : 0);
            }
        };
    }

    private BatchSource next(int sequences, int row) {
        return new BatchSource() {
            @Override
            public void read(StepKind kind, long step, int microBatch, int[] into) {
                long first = firstSequence(step, microBatch) * row;
                for (int i = 0; i < sequences * row; i++) {
                    into[i] = (int) tokens[Math.toIntExact(first + i)];
                }
            }

            private long firstSequence(long step, int microBatch) {
                return (step - 1) * SEQUENCES + (long) microBatch * sequences;
            }

            @Override
            public boolean packed() {
                return positions.length > 0;
            }

            // borders from the positions; what does not count, borders too, from the targets
            @Override
            public void marks(StepKind kind, long step, int microBatch, byte[] marks) {
                long first = firstSequence(step, microBatch) * CONTEXT;
                for (int b = 0; b < sequences; b++) {
                    for (int t = 0; t <= CONTEXT; t++) {
                        int at = Math.toIntExact(first + (long) b * CONTEXT + t);
                        boolean begins = t < CONTEXT && positions[at] == 0;
                        boolean counts = t == 0 || targets[at - 1] >= 0;
                        marks[b * row + t] =
                                (byte) ((begins ? BEGINS : 0) + (counts ? 0 : UNCOUNTED));
                    }
                }
            }
        };
    }

    /** The inputs of the first sequence of step 1. */
    public int[] firstSequence() {
        int[] first = new int[CONTEXT];
        for (int i = 0; i < CONTEXT; i++) {
            first[i] = (int) tokens[i];
        }
        return first;
    }

    /** Of {@link #firstSequence}, one row of the vocabulary's size for each token. */
    public double[] logits() {
        return Objects.requireNonNull(tensors("logits.safetensors").get("logits"));
    }

    public List<Double> numbers(String key) {
        List<Double> numbers = new ArrayList<>();
        expected.get(key).forEach(n -> numbers.add(n.asDouble()));
        return numbers;
    }

    public Map<String, double[]> firstGradients() {
        return tensors("grad1.safetensors");
    }

    /** Of cases whose final weights are here. */
    Map<String, double[]> finalWeights() {
        return tensors("final.safetensors");
    }

    /** Takes tensors as the files have them out of parameters. */
    public Map<String, double[]> asPublished(Map<String, float[]> parameters) {
        Map<String, double[]> all = new LinkedHashMap<>();
        for (StoredPart part : config.family().parts(shape())) {
            int wide = Objects.requireNonNull(config.parameters().get(part.parameter())).getLast();
            float[] from = Objects.requireNonNull(parameters.get(part.parameter()));
            double[] into = new double[part.rows() * part.columns()];
            each(part, wide, (here, there) -> into[there] = from[here]);
            all.put(part.name(), into);
        }
        return all;
    }

    private Map<String, double[]> tensors(String file) {
        Map<String, double[]> all = new LinkedHashMap<>();
        try (SafetensorsFile opened = open(file)) {
            for (StoredTensor t : opened.tensors()) {
                double[] values = new double[Math.toIntExact(t.elements())];
                for (int i = 0; i < values.length; i++) {
                    values[i] = t.real(i);
                }
                all.put(published(t.name()), values);
            }
        }
        return all;
    }

    /** GPT-2's names have a prefix in these files, tied or not. */
    private String published(String stored) {
        return config.shape().tied() && stored.startsWith("transformer.")
                ? config.family().bareName(stored)
                : stored;
    }

    private SafetensorsFile open(String file) {
        return SafetensorsFile.open(path(file));
    }

    /** Returns the folder of the model, as others publish them. */
    public Path folder() {
        return Objects.requireNonNull(path("config.json").getParent());
    }

    /** Returns the path of one of the case's files. */
    public Path path(String file) {
        String resource = "/golden-models/" + name + "/" + file;
        URL url = Objects.requireNonNull(GoldenFamily.class.getResource(resource), resource);
        try {
            return Path.of(url.toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }
}
