package dev.penstock.runtime.planning;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.ModelSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.schedules.plan.work.ModelShape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** Reads {@code --model}: a well-known name, a run's configuration, or sizes. */
public final class PlannedModel {
    private static final Map<String, ModelShape> KNOWN =
            new TreeMap<>(
                    Map.of(
                            "gpt2-124m", new ModelShape(12, 768, 12, 50_257, 1_024, true),
                            "gpt2-355m", new ModelShape(24, 1_024, 16, 50_257, 1_024, true),
                            "gpt2-774m", new ModelShape(36, 1_280, 20, 50_257, 1_024, true),
                            "gpt2-1558m", new ModelShape(48, 1_600, 25, 50_257, 1_024, true),
                            "gpt3-13b", new ModelShape(40, 5_120, 40, 50_257, 2_048, true),
                            "gpt3-175b", new ModelShape(96, 12_288, 96, 50_257, 2_048, true),
                            "gpt-530b", new ModelShape(105, 20_480, 128, 51_200, 2_048, true),
                            "gpt-1t", new ModelShape(128, 25_600, 160, 51_200, 2_048, true)));
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

    /** Returns the model, or nothing after adding a problem. */
    public Optional<ModelShape> read(String text) {
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
        problems.add(
                "--model: expected one of %s, a run's configuration (*.conf) or sizes such as layers=24,width=1024,heads=16, got %s"
                        .formatted(names(), text));
        return Optional.empty();
    }

    private Optional<ModelShape> ofRun(Path file) {
        try {
            return Optional.of(of(ConfigLoader.load(file, List.of())));
        } catch (ConfigException e) {
            e.problems().forEach(problem -> problems.add(problem.toString()));
            return Optional.empty();
        } catch (BadInputException e) {
            problems.add("--model: " + e.getMessage());
            return Optional.empty();
        }
    }

    /**
     * Returns the model of a run.
     *
     * @throws BadInputException if its blocks are not those of a GPT-2, whose work plans know
     */
    public static ModelShape of(RunConfig config) {
        ModelSection model = config.model();
        BlockDesign block = model.shape(config.data().tokenizer().vocabulary()).block();
        BlockDesign gpt2 = BlockDesign.gpt2(model.width(), model.heads());
        boolean known =
                model.width() % model.heads() == 0
                        && block.hiddenColumns() == gpt2.hiddenColumns()
                        && block.heads().columns() == gpt2.heads().columns()
                        && block.activation() != BlockDesign.Activation.SWIGLU
                        && !block.hasWindows();
        if (!known) {
            throw new BadInputException(
                    "plans know the work of a GPT-2's blocks, with 4 x width hidden columns and dense attention: expected such a model, got a %s; measure a run of it instead: schedule simulate --profile"
                            .formatted(model.family()));
        }
        return new ModelShape(
                model.layers(),
                model.width(),
                model.heads(),
                model.vocabularyOr(config.data().tokenizer().vocabulary()),
                model.context(),
                model.tied());
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
            return Optional.of(new ModelShape(s[0], s[1], s[2], s[3], s[4], tied));
        } catch (IllegalArgumentException e) {
            problems.add("--model: " + e.getMessage());
            return Optional.empty();
        }
    }
}
