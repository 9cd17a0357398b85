package dev.penstock.runtime.planning;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.config.run.Suggestion;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.schedules.plan.work.BlockShape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

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

    /**
     * @param problems receives what is wrong
     */
    public PlannedModel(List<String> problems) {
        this.problems = problems;
    }

    static String names() {
        return String.join(", ", KNOWN.keySet());
    }

    /** Returns the sizes of the model, or nothing after adding a problem. */
    public Optional<dev.penstock.schedules.plan.work.ModelShape> read(String text) {
        return design(text).map(PlannedModel::of);
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
                                Suggestion.among(KNOWN.keySet(), text)
                                        .map("; did you mean %s?"::formatted)
                                        .orElse("")));
        return Optional.empty();
    }

    private Optional<ModelShape> ofRun(Path file) {
        try {
            return Optional.of(design(ConfigLoader.loadOfRun(file, List.of()).config()));
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

    /** Returns the sizes of a run's model. */
    public static dev.penstock.schedules.plan.work.ModelShape of(RunConfig config) {
        return of(design(config));
    }

    /** Returns the sizes of a model. */
    public static dev.penstock.schedules.plan.work.ModelShape of(ModelShape model) {
        BlockDesign block = model.block();
        return new dev.penstock.schedules.plan.work.ModelShape(
                model.layers(),
                model.width(),
                model.heads(),
                model.vocabulary(),
                model.context(),
                model.tied(),
                new BlockShape(
                        block.heads().keys(),
                        block.heads().size(),
                        block.hidden(),
                        block.activation().parts(),
                        model.layerParameters() - model.layerMatrixParameters(),
                        block.hasWindows() ? block.windows() : List.of()),
                model.positions().tableRows(),
                block.norm().parameters(model.width()));
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
