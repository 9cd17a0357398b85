package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.Family;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.ModelShape;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * Section {@code fine-tune}: which parameters are trained.
 *
 * @param rank of adapters
 * @param alpha scale of adapters, times the rank
 * @param targets linear layers beside which adapters stand, as the family calls them; empty: those
 *     that PEFT takes
 * @param dropout share of what adapters read that is dropped in training
 * @param adapter a folder of PEFT, whose adapter the run begins with
 * @param freeze names of parameters that are not trained, with {@code *} for any text
 * @param frozen how matrices that are not trained are kept
 */
public record FineTuneSection(
        @Setting(
                        is = "full",
                        doc =
                                "what is trained: full, the model's own parameters; lora, low-rank"
                                        + " adapters beside its linear layers")
                Method method,
        @Setting(is = "8", range = "[1, 65536]", doc = "rank of adapters (lora)") int rank,
        @Setting(
                        is = "16",
                        range = "(0, 1000000000]",
                        doc = "adapters count alpha / rank times (lora)")
                double alpha,
        @Setting(
                        is = "[]",
                        doc =
                                "linear layers with adapters, by the family's names, or all-linear;"
                                        + " empty: as PEFT, q_proj and v_proj, of gpt2 c_attn (lora)")
                List<String> targets,
        @Setting(
                        is = "0",
                        range = "[0, 1)",
                        doc = "share of what adapters read that is dropped in training (lora)")
                double dropout,
        @Setting(
                        is = "none",
                        word = "none",
                        doc = "a folder of PEFT with the adapter that a new run begins with (lora)")
                Optional<Path> adapter,
        @Setting(
                        is = "[]",
                        doc =
                                "names of parameters that are not trained, with * for any text,"
                                        + " such as h.0.*")
                List<String> freeze,
        @Setting(
                        is = "auto",
                        doc =
                                "how a rank keeps the matrices that are not trained: auto, as"
                                        + " device.precision; float32; bf16, half of that; int8, a"
                                        + " quarter: integers with a scale for each row")
                Frozen frozen) {
    /** How matrices are kept that are not trained. */
    public enum Frozen {
        AUTO,
        FLOAT32,
        BF16,
        INT8
    }

    /** What is trained. */
    public enum Method {
        FULL,
        LORA
    }

    /** Returns how matrices are kept that are not trained. */
    public FineTuning.Frozen kept() {
        return switch (frozen) {
            case AUTO -> FineTuning.Frozen.AS_MULTIPLIED;
            case FLOAT32 -> FineTuning.Frozen.FLOAT32;
            case BF16 -> FineTuning.Frozen.BF16;
            case INT8 -> FineTuning.Frozen.INT8;
        };
    }

    /**
     * Looks at the targets, whatever the method: where that is misspelt, they are asked for too.
     *
     * @throws IllegalArgumentException if a model has no such layers
     */
    void requireKnownTargets(Family family, ModelShape shape) {
        if (!targets.isEmpty()) {
            AdapterParts.places(family, shape, targets);
        }
    }

    /**
     * Returns what is trained of a model.
     *
     * @throws IllegalArgumentException if it has no such layers
     */
    public FineTuning tuning(Family family, ModelShape shape) {
        if (method == Method.FULL) {
            return new FineTuning(Optional.empty(), freeze);
        }
        List<String> names = targets.isEmpty() ? AdapterParts.usual(family, shape) : targets;
        var adapters =
                new Adapters(rank, alpha, dropout, AdapterParts.places(family, shape, names));
        return new FineTuning(Optional.of(adapters), freeze);
    }
}
