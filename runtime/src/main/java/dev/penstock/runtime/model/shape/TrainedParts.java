package dev.penstock.runtime.model.shape;

import dev.penstock.schedules.ir.FrozenStages;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Which parts of a model are trained: where backwards add to gradients, and where they end, since
 * nothing below is trained.
 */
public record TrainedParts(ModelShape shape, FineTuning tuning) {
    private static final String TOKEN_TABLE = "wte.weight";

    /** Returns whether a backward has to go on to the embedding. */
    public boolean embedding() {
        boolean places = shape.positions().tableRows() > 0 && tuning.trains("wpe.weight");
        boolean types = isEncoder() && tuning.trains("wtt.weight");
        return tuning.trains(TOKEN_TABLE) || places || types;
    }

    /** Returns whether anything of a block is trained, its adapters included. */
    public boolean block(int layer) {
        return attention(layer) || mlp(layer);
    }

    /** Returns whether anything of the first half of a block is trained. */
    public boolean attention(int layer) {
        String h = prefix(layer) + "attn.";
        boolean headNorms =
                shape.block().heads().norms()
                        && any(Stream.of(h + "q_norm.weight", h + "k_norm.weight"));
        return firstNorm(layer)
                || headNorms
                || any(bias(h + "c_attn", shape.block().queryKeyValueBias()))
                || factor(layer, "attn.c_attn")
                || any(bias(h + "c_proj", shape.block().otherBiases()))
                || factor(layer, "attn.c_proj");
    }

    /**
     * Returns whether the norm of the first half of a block is trained, whose gradient takes that
     * of the half's input.
     */
    public boolean firstNorm(int layer) {
        return norm(prefix(layer) + "ln_1");
    }

    /** Same as {@link #firstNorm} for the second half. */
    public boolean secondNorm(int layer) {
        return norm(prefix(layer) + "ln_2");
    }

    /** Returns whether anything of the second half of a block is trained. */
    public boolean mlp(int layer) {
        String h = prefix(layer) + "mlp.";
        return secondNorm(layer)
                || any(bias(h + "c_fc", shape.block().otherBiases()))
                || factor(layer, "mlp.c_fc")
                || any(bias(h + "c_proj", shape.block().otherBiases()))
                || factor(layer, "mlp.c_proj");
    }

    /**
     * Returns whether a product for the weights has to be computed of a linear layer: for its
     * matrix, or for an adapter's beside it.
     *
     * @param linear such as {@code attn.c_attn}
     */
    public boolean factor(int layer, String linear) {
        return tuning.trains(prefix(layer) + linear + ".weight")
                || tuning.beside(linear).stream()
                        .flatMap(place -> Stream.of(place.inner(layer), place.outer(layer)))
                        .anyMatch(tuning::trains);
    }

    /** Returns whether the final norm or anything of the head is trained. */
    public boolean head() {
        return norm("ln_f") || headMatrix() || (isEncoder() && transform());
    }

    private boolean isEncoder() {
        return shape.block().encoder() != null;
    }

    private boolean transform() {
        return shape.classifies()
                ? any(Stream.of("pooler.weight", "pooler.bias", "classifier.bias"))
                : norm("head.norm")
                        || any(Stream.of("head.dense.weight", "head.dense.bias", "head.bias"));
    }

    /** Returns whether the head's matrix is trained. */
    public boolean headMatrix() {
        return tuning.trains(shape.headMatrix());
    }

    /** Returns whether anything of a stage is trained. */
    public boolean stage(StageRole role) {
        return (role.first() && embedding())
                || lowestBlock(role) < role.layers()
                || (role.last() && head());
    }

    /**
     * Returns the lowest block of a stage of which something is trained, by its index there; the
     * number of its blocks if there is none.
     */
    public int lowestBlock(StageRole role) {
        int block = 0;
        while (block < role.layers() && !block(role.firstLayer() + block)) {
            block++;
        }
        return block;
    }

    /**
     * Returns whether nothing is trained before the stage's own blocks, so that nobody needs the
     * gradient of what enters the lowest of them that is trained.
     */
    public boolean endsIn(StageRole role) {
        for (int layer = 0; layer < role.firstLayer(); layer++) {
            if (block(layer)) {
                return false;
            }
        }
        return !embedding();
    }

    /**
     * Returns the lowest block of a stage that has a backward, by its index there: the lowest of
     * all where something before the stage is trained. The number of its blocks if none has.
     */
    public int lowestBackward(StageRole role) {
        return endsIn(role) ? lowestBlock(role) : 0;
    }

    /** Returns the stages of which nothing is trained. */
    public FrozenStages frozen(StagePartition partition) {
        Set<Integer> frozen = new HashSet<>();
        for (int stage = 0; stage < partition.stages(); stage++) {
            if (!stage(partition.role(stage))) {
                frozen.add(stage);
            }
        }
        return new FrozenStages(frozen);
    }

    private boolean norm(String name) {
        return tuning.trains(name + ".weight")
                || (shape.block().norm().hasBias() && tuning.trains(name + ".bias"));
    }

    private static Stream<String> bias(String linear, boolean exists) {
        return exists ? Stream.of(linear + ".bias") : Stream.empty();
    }

    private boolean any(Stream<String> names) {
        return names.anyMatch(tuning::trains);
    }

    private static String prefix(int layer) {
        return "h." + layer + ".";
    }
}
