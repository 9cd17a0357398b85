package dev.penstock.runtime.model.family;

import dev.penstock.runtime.model.shape.AdapterPlace;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.ModelShape;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Adapters by the names of PEFT, which calls linear layers as the family does: {@code
 * base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight [r, in]}, {@code lora_B.weight
 * [out, r]}.
 */
public final class AdapterParts {
    /** Stands for all linear layers of the blocks. */
    public static final String ALL = "all-linear";

    /** Queries and values as families call them, or all that attention projects to. */
    private static final List<List<String>> USUAL =
            List.of(List.of("q_proj", "v_proj"), List.of("query", "value"), List.of("c_attn"));

    private static final String PREFIX = "base_model.model.";
    private static final String WEIGHT = ".weight";
    private static final String FIRST_BLOCK = "h.0.";

    private AdapterParts() {}

    /**
     * Returns where adapters stand that are asked for by the family's names of layers: a name, or
     * its end after a dot, as {@code q_proj} or {@code attn.c_proj}.
     *
     * @throws IllegalArgumentException naming every target that no layer has
     */
    public static List<AdapterPlace> places(Family family, ModelShape shape, List<String> targets) {
        List<StoredPart> linears = linears(family, shape, 0);
        Set<AdapterPlace> places = new LinkedHashSet<>();
        Set<String> unknown = new LinkedHashSet<>(targets);
        for (StoredPart linear : linears) {
            for (String target : targets) {
                if (isMeant(module(family, linear), target)) {
                    places.add(place(family, linear, linears));
                    unknown.remove(target);
                }
            }
        }
        if (!unknown.isEmpty() || places.isEmpty()) {
            Set<String> known = new TreeSet<>();
            linears.forEach(linear -> known.add(lastWord(module(family, linear))));
            throw new IllegalArgumentException(
                    "expected linear layers of family %s (%s), or %s, got %s"
                            .formatted(
                                    family.word(),
                                    String.join(", ", known),
                                    ALL,
                                    unknown.isEmpty() ? "none" : String.join(", ", unknown)));
        }
        return List.copyOf(places);
    }

    /** Returns the layers that PEFT takes where none are named. */
    public static List<String> usual(Family family, ModelShape shape) {
        Set<String> known = new TreeSet<>();
        linears(family, shape, 0).forEach(linear -> known.add(lastWord(module(family, linear))));
        return USUAL.stream().filter(known::containsAll).findFirst().orElseThrow();
    }

    private static boolean isMeant(String module, String target) {
        return target.equals(ALL) || module.equals(target) || module.endsWith("." + target);
    }

    /** Returns the matrices of all adapters of a model, in the order of its layers. */
    public static List<StoredPart> of(Family family, ModelShape shape, Adapters adapters) {
        List<StoredPart> parts = new ArrayList<>();
        int rank = adapters.rank();
        for (int layer = 0; layer < shape.layers(); layer++) {
            List<StoredPart> linears = linears(family, shape, layer);
            for (AdapterPlace place : adapters.places()) {
                StoredPart linear = linearOf(place, layer, linears);
                String name = PREFIX + module(family, linear);
                parts.add(
                        new StoredPart(
                                name + ".lora_A.weight",
                                place.inner(layer),
                                List.of(rank, linear.rows()),
                                0,
                                true));
                parts.add(
                        new StoredPart(
                                name + ".lora_B.weight",
                                place.outer(layer),
                                List.of(linear.columns(), rank),
                                0,
                                true));
            }
        }
        return parts;
    }

    private static StoredPart linearOf(AdapterPlace place, int layer, List<StoredPart> linears) {
        String parameter = "h." + layer + "." + place.linear() + WEIGHT;
        return linears.stream()
                .filter(
                        part ->
                                part.parameter().equals(parameter)
                                        && part.firstColumn() == place.firstColumn()
                                        && part.columns() == place.columns())
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "no linear layer has the columns of " + place));
    }

    /** The matrices of a block as the family stores them. */
    private static List<StoredPart> linears(Family family, ModelShape shape, int layer) {
        String block = "h." + layer + ".";
        return family.parts(shape).stream()
                .filter(part -> part.parameter().startsWith(block) && part.shape().size() == 2)
                .toList();
    }

    /** The name of a layer in the model, with the prefix that some files leave out. */
    private static String module(Family family, StoredPart linear) {
        String bare = family.bareName(linear.name());
        return family.prefix() + bare.substring(0, bare.length() - WEIGHT.length());
    }

    private static AdapterPlace place(Family family, StoredPart linear, List<StoredPart> linears) {
        String parameter = linear.parameter();
        boolean apart =
                linears.stream().filter(other -> other.parameter().equals(parameter)).count() > 1;
        return new AdapterPlace(
                parameter.substring(FIRST_BLOCK.length(), parameter.length() - WEIGHT.length()),
                apart ? lastWord(module(family, linear)) : "",
                linear.firstColumn(),
                linear.columns());
    }

    private static String lastWord(String module) {
        return module.substring(module.lastIndexOf('.') + 1);
    }

    /**
     * Returns the name of the layer beside which an adapter stands, as PEFT's configuration says.
     */
    public static List<String> targets(Family family, ModelShape shape, Adapters adapters) {
        List<StoredPart> linears = linears(family, shape, 0);
        return IntStream.range(0, adapters.places().size())
                .mapToObj(
                        i -> {
                            StoredPart linear = linearOf(adapters.places().get(i), 0, linears);
                            String module = module(family, linear);
                            boolean alone =
                                    linears.stream()
                                                    .filter(
                                                            other ->
                                                                    isMeant(
                                                                            module(family, other),
                                                                            lastWord(module)))
                                                    .count()
                                            == 1;
                            int words = alone ? 1 : 2;
                            return lastWords(module, words);
                        })
                .toList();
    }

    /**
     * Returns a model's adapters in words: {@code lora of rank 4, alpha 8.0, on q_proj, v_proj}.
     */
    public static Optional<String> words(ModelConfig model) {
        return model.fineTuning()
                .adapters()
                .map(
                        adapters ->
                                "lora of rank %d, alpha %s, on %s"
                                        .formatted(
                                                adapters.rank(),
                                                adapters.alpha(),
                                                String.join(
                                                        ", ",
                                                        targets(
                                                                model.family(),
                                                                model.shape(),
                                                                adapters))));
    }

    private static String lastWords(String module, int words) {
        String[] all = module.split("\\.");
        return String.join(".", List.of(all).subList(all.length - words, all.length));
    }
}
