package dev.penstock.runtime.planning;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.dataplane.emulated.EmulatedLinks;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.NearWord;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DataSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.schedules.plan.work.BlockShape;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.TrainedShape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * Reads {@code --model}: a well-known name, a run's configuration, a folder of Hugging Face's, or
 * the sizes of a GPT-2.
 */
public final class PlannedModel {
    private static final Map<String, ModelShape> KNOWN =
            new TreeMap<>(
                    Map.of(
                            "gpt2-124m", ModelShape.gpt2(50_257, 1_024, 768, 12, 12, true),
                            "gpt2-355m", ModelShape.gpt2(50_257, 1_024, 1_024, 24, 16, true),
                            "gpt2-774m", ModelShape.gpt2(50_257, 1_024, 1_280, 36, 20, true),
                            "gpt2-1558m", ModelShape.gpt2(50_257, 1_024, 1_600, 48, 25, true),
                            "gpt3-13b", ModelShape.gpt2(50_257, 2_048, 5_120, 40, 40, true),
                            "gpt3-175b", ModelShape.gpt2(50_257, 2_048, 12_288, 96, 96, true),
                            "gpt-530b", ModelShape.gpt2(51_200, 2_048, 20_480, 105, 128, true),
                            "gpt-1t", ModelShape.gpt2(51_200, 2_048, 25_600, 128, 160, true)));
    private static final List<String> SIZES =
            List.of("layers", "width", "heads", "vocabulary", "sequence");

    private final List<String> problems;
    private final List<String> notes = new ArrayList<>();
    private Optional<ModelConfig> ofRun = Optional.empty();
    private EmulatedLinks links = EmulatedLinks.NONE;

    /**
     * @param problems receives what is wrong
     */
    public PlannedModel(List<String> problems) {
        this.problems = problems;
    }

    /** Returns a cluster with the links that the run emulates in place of its own. */
    public Hardware overLinks(Hardware cluster) {
        return EmulatedHardware.of(cluster, links);
    }

    static String names() {
        return String.join(", ", KNOWN.keySet());
    }

    /** Returns the sizes of the model, or nothing after adding a problem. */
    public Optional<dev.penstock.schedules.plan.work.ModelShape> read(String text) {
        return design(text).map(this::sizes);
    }

    /** Returns the model with all that it computes, or nothing after adding a problem. */
    public Optional<ModelShape> design(String text) {
        ModelShape known = KNOWN.get(text);
        if (known != null) {
            return Optional.of(known);
        }
        if (text.endsWith(".conf")) {
            return ofRun(Path.of(text));
        }
        if (text.contains("=")) {
            return ofSizes(text);
        }
        if (text.endsWith(ModelConfig.FILE) || Files.isDirectory(Path.of(text))) {
            return ofFolder(Path.of(text));
        }
        problems.add(
                "--model: expected one of %s, a run's configuration (*.conf), a Hugging Face folder or sizes such as layers=24,width=1024,heads=16, got %s%s"
                        .formatted(
                                names(),
                                text,
                                NearWord.among(KNOWN.keySet(), text)
                                        .map("; did you mean %s?"::formatted)
                                        .orElse("")));
        return Optional.empty();
    }

    /** Returns what is trained of the model that was read: all of it, but for a run. */
    public FineTuning tuning() {
        return ofRun.map(ModelConfig::fineTuning).orElse(FineTuning.FULL);
    }

    /** Returns what a plan leaves out of the run whose model was read, in sentences. */
    public List<String> notes() {
        return List.copyOf(notes);
    }

    private static List<String> notes(Path file, RunConfig config) {
        List<String> notes = new ArrayList<>();
        if (config.data().packing() == DataSection.Packing.LENGTHS) {
            notes.add(
                    "Planned for full rows of %,d tokens: data.packing = lengths makes them shorter, and penstock schedule simulate %s says how much time that saves."
                            .formatted(config.model().context(), file));
        }
        ModelConfig model = tuned(config);
        var parts = new TrainedParts(model.shape(), model.fineTuning());
        long trained = IntStream.range(0, model.shape().layers()).filter(parts::block).count();
        if (trained > 0 && trained < model.shape().layers()) {
            notes.add(
                    "Each block counts the mean of all: %d of %d are trained; a run without pipeline.partition balances its stages by what each of its own blocks costs."
                            .formatted(trained, model.shape().layers()));
        }
        return notes;
    }

    /** Returns the sizes of the design that was read, with what is trained of it. */
    public dev.penstock.schedules.plan.work.ModelShape sizes(ModelShape design) {
        return ofRun.map(model -> tuned(of(design), model)).orElseGet(() -> of(design));
    }

    private Optional<ModelShape> ofRun(Path file) {
        try {
            RunConfig config = ConfigLoader.loadOfRun(file, List.of()).config();
            ofRun = Optional.of(tuned(config));
            links = config.dataPlane().emulated();
            config.dataPlane()
                    .emulatedWords(config.grid().ranks())
                    .ifPresent(words -> notes.add("Links are emulated ones: " + words));
            notes.addAll(notes(file, config));
            return Optional.of(design(config));
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add(problem.toString()));
            return Optional.empty();
        }
    }

    private Optional<ModelShape> ofFolder(Path path) {
        try {
            Path file = Files.isDirectory(path) ? path.resolve(ModelConfig.FILE) : path;
            return Optional.of(ModelConfig.read(file).shape());
        } catch (StoredFileException e) {
            problems.add("--model: " + e.getMessage());
            return Optional.empty();
        }
    }

    private static ModelShape design(RunConfig config) {
        return config.model().shape(config.data().tokenizer().vocabulary());
    }

    private static ModelConfig tuned(RunConfig config) {
        ModelConfig model = config.model().config(config.data().tokenizer().vocabulary());
        return model.training(config.fineTune().tuning(model.family(), model.shape()));
    }

    /** Returns the sizes of a run's model. */
    public static dev.penstock.schedules.plan.work.ModelShape of(RunConfig config) {
        ModelConfig model = tuned(config);
        return tuned(of(design(config)), model);
    }

    private static dev.penstock.schedules.plan.work.ModelShape tuned(
            dev.penstock.schedules.plan.work.ModelShape sizes, ModelConfig model) {
        return model.fineTuning().equals(FineTuning.FULL) ? sizes : sizes.training(trained(model));
    }

    private static TrainedShape trained(ModelConfig model) {
        long layers = model.shape().layers();
        Map<String, List<Integer>> trained = model.trained();
        Map<String, List<Integer>> adapters = model.parameters();
        adapters.keySet().removeIf(name -> !FineTuning.isAdapter(name));
        return new TrainedShape(
                Math.ceilDiv(elements(adapters, _ -> true), layers),
                Math.ceilDiv(elements(trained, name -> name.startsWith("h.")), layers),
                elements(
                                trained,
                                name ->
                                        name.startsWith("h.")
                                                && requireNonNull(trained.get(name)).size() == 2)
                        / layers,
                elements(
                        trained,
                        name ->
                                name.startsWith("wte.")
                                        || name.startsWith("wpe.")
                                        || name.startsWith("wtt.")),
                elements(trained, name -> name.startsWith("ln_f.") || name.startsWith("head.")),
                new TrainedParts(model.shape(), model.fineTuning()).headMatrix());
    }

    private static long elements(Map<String, List<Integer>> parameters, Predicate<String> counted) {
        return parameters.entrySet().stream()
                .filter(parameter -> counted.test(parameter.getKey()))
                .mapToLong(
                        parameter ->
                                parameter.getValue().stream()
                                        .mapToLong(n -> n)
                                        .reduce(1, (a, b) -> a * b))
                .sum();
    }

    /**
     * Returns the sizes of a model. Heads of a retention count as such of attention that have as
     * many parameters and as many columns to keep, in a window of as many products as the state
     * costs: a slice costs the same wherever it lies, but for the first tokens. Where other layers
     * attend, all count as heads of their mean size, in windows of as many products as each costs.
     */
    public static dev.penstock.schedules.plan.work.ModelShape of(ModelShape model) {
        BlockDesign block = model.block();
        HeadDesign heads = block.heads();
        int size = block.retains() ? meanSize(model) : heads.size();
        List<Integer> windows =
                block.retains()
                        ? IntStream.range(0, model.layers())
                                .mapToObj(layer -> window(model, layer, size))
                                .toList()
                        : block.hasWindows() ? block.windows() : List.of();
        return new dev.penstock.schedules.plan.work.ModelShape(
                model.layers(),
                model.width(),
                model.heads(),
                model.vocabulary(),
                model.context(),
                model.tied() || model.classifies(),
                new BlockShape(
                        heads.keys(),
                        size,
                        block.hidden(),
                        block.activation().parts(),
                        model.layerParameters(0) - model.layerMatrixParameters(0),
                        windows,
                        block.encoder() != null),
                model.addedRows(),
                model.classifies() ? model.headParameters() : model.headVectorParameters());
    }

    private static int meanSize(ModelShape model) {
        int columns = 0;
        for (int layer = 0; layer < model.layers(); layer++) {
            HeadDesign heads = model.block().heads(layer);
            columns += heads.columns() + heads.outputColumns();
        }
        return Math.max(1, Math.round(columns / (4f * model.heads() * model.layers())));
    }

    /** Of n keys at most, a query sees {@code n - n^2 / 2T} on average. */
    private static int window(ModelShape model, int layer, int size) {
        HeadDesign heads = model.block().heads(layer);
        if (heads.retention() != null) {
            return Math.max(1, heads.stateColumns() / (heads.queries() * size));
        }
        double context = model.context();
        int own = model.block().window(layer);
        double keys = own == BlockDesign.ALL ? context : Math.min(own, context);
        double seen = (keys - keys * keys / (2 * context)) * heads.size() / size;
        double rest = Math.max(0, 1 - 2 * seen / context);
        return (int) Math.max(1, Math.round(context * (1 - Math.sqrt(rest))));
    }

    private Optional<ModelShape> ofSizes(String text) {
        int before = problems.size();
        Map<String, Integer> sizes = new TreeMap<>();
        sizes.put("vocabulary", 50_257);
        sizes.put("sequence", 1_024);
        boolean tied = true;
        for (String entry : text.split(",")) {
            int equals = entry.indexOf('=');
            String key = entry.substring(0, Math.max(0, equals)).strip();
            String value = entry.substring(equals + 1).strip();
            if (key.equals("tied") && (value.equals("true") || value.equals("false"))) {
                tied = value.equals("true");
            } else if (SIZES.contains(key) && value.matches("[1-9][0-9]{0,8}")) {
                sizes.put(key, Integer.valueOf(value));
            } else {
                problems.add(
                        "--model: expected %s, each a number from 1, or tied=true|false, got %s"
                                .formatted(String.join(", ", SIZES), entry));
            }
        }
        List<String> missing = new ArrayList<>(SIZES);
        missing.removeAll(sizes.keySet());
        if (problems.size() == before && !missing.isEmpty()) {
            problems.add(
                    "--model: expected %s as well, got only %s; add for example %s=16"
                            .formatted(String.join(", ", missing), text, missing.getFirst()));
        }
        return problems.size() == before ? shape(sizes, tied) : Optional.empty();
    }

    private Optional<ModelShape> shape(Map<String, Integer> sizes, boolean tied) {
        int[] s = SIZES.stream().mapToInt(size -> sizes.getOrDefault(size, 0)).toArray();
        try {
            return Optional.of(ModelShape.gpt2(s[3], s[4], s[1], s[0], s[2], tied));
        } catch (IllegalArgumentException e) {
            problems.add("--model: " + e.getMessage());
            return Optional.empty();
        }
    }
}
