package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.LayerList;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.StageRole;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Section {@code model}: the shape of the model. Whatever is left out is as usual in its family.
 *
 * @param context tokens of a sequence
 * @param width size of a token's vector, a multiple of {@code heads} unless {@code headSize} is
 *     given
 * @param layers transformer blocks
 * @param heads attention heads of a block
 * @param tied whether the head uses the token embedding's weights
 * @param vocabulary rows of the token embedding; empty: as many as the tokenizer has
 * @param family the name of one of {@link Families}
 * @param from a {@code config.json}, or its folder, that gave the values of this section
 * @param keyHeads heads of keys and of values, a divisor of {@code heads}
 * @param headSize columns of a head
 * @param hidden columns of the MLP's hidden layer
 * @param attention entry i: what layers i, i + n, .. see, of n entries; see {@link ModelKeys}
 * @param attentionByLayer whether scores of layer l, from 0, are divided by l + 1
 * @param activation of the MLP
 * @param epsilon of the norms
 * @param theta of positions that turn heads
 * @param stretch of their wavelengths: factor, low, high and original length; empty: none
 * @param positions tokens of the longest sequence that the model can read
 * @param dropout share of the embeddings, and of what each branch of a block adds, that is dropped
 *     in training
 * @param valueSize columns of a retention head's values
 * @param gate whether a gate opens what leaves the heads of a retention
 * @param decay how these heads forget
 * @param labels names of the classes to which texts belong; empty: the model predicts words
 */
public record ModelSection(
        @Setting(is = "256", range = "[1, 16777216]", doc = "tokens of a sequence") int context,
        @Setting(
                        is = "256",
                        range = "[1, 1048576]",
                        doc = "size of a token's vector, a multiple of model.heads")
                int width,
        @Setting(
                        is = "4",
                        range = "[1, 10000]",
                        doc =
                                "transformer blocks, all of the family's own kind, or the kind of"
                                        + " each: dense, local(N), of retnet retention; \"2 x"
                                        + " retention\" and \"3 x (local(N), dense)\" repeat")
                LayerList layers,
        @Setting(is = "4", range = "[1, 65536]", doc = "attention heads of a block") int heads,
        @Setting(is = "true", doc = "the head uses the token embedding's weights") boolean tied,
        @Setting(
                        is = "tokenizer",
                        word = "tokenizer",
                        range = "[2, 100000000]",
                        doc = "rows of the token embedding; tokenizer: as many as it has tokens")
                Optional<Integer> vocabulary,
        @Setting(
                        is = "gpt2",
                        doc =
                                "how blocks are built: gpt2, llama, mistral, qwen2, qwen3,"
                                        + " retnet, bert or megatron-bert")
                String family,
        @Setting(
                        is = "none",
                        word = "none",
                        doc =
                                "a Hugging Face folder, or its config.json, that says what is not"
                                        + " said here; --init takes its weights")
                Optional<Path> from,
        @Setting(
                        is = "usual",
                        word = "usual",
                        range = "[1, 65536]",
                        doc = "heads of keys, each for a group of heads; usual: model.heads")
                Optional<Integer> keyHeads,
        @Setting(
                        is = "usual",
                        word = "usual",
                        range = "[1, 1048576]",
                        doc = "columns of a head; usual: model.width / model.heads")
                Optional<Integer> headSize,
        @Setting(
                        is = "usual",
                        word = "usual",
                        range = "[1, 16777216]",
                        doc =
                                "columns of the MLP's hidden layer; usual: 4 x model.width, or of"
                                        + " a gated one 8/3 of it and of retnet 4/3, rounded up to"
                                        + " multiples of 64")
                Optional<Integer> hidden,
        @Setting(
                        is = "[dense]",
                        doc =
                                "what layers see, in turn: dense, or local(N), the last N tokens"
                                        + " and no others")
                List<String> attention,
        @Setting(is = "false", doc = "scores of layer l, from 0, are divided by l + 1")
                boolean attentionByLayer,
        @Setting(
                        is = "usual",
                        doc =
                                "of the MLP: gelu-tanh, gelu (the exact one), swiglu or geglu;"
                                        + " usual: the family's")
                ModelKeys.ActivationWord activation,
        @Setting(
                        is = "usual",
                        word = "usual",
                        range = "(0, 1]",
                        doc = "of the norms; usual: 1e-5, of qwen2, qwen3 and retnet 1e-6")
                Optional<Double> epsilon,
        @Setting(
                        is = "usual",
                        word = "usual",
                        range = "(0, 1000000000000]",
                        doc =
                                "of positions that turn heads; usual: 10,000, of qwen2 and qwen3"
                                        + " 1,000,000")
                Optional<Double> theta,
        @Setting(
                        is = "[]",
                        range = "(0, 1000000000]",
                        doc =
                                "llama3's of long wavelengths: [factor, low, high, original"
                                        + " context]; empty: none")
                List<Double> stretch,
        @Setting(
                        is = "context",
                        word = "context",
                        range = "[1, 16777216]",
                        doc =
                                "tokens of the longest sequence that the model can read, for its"
                                        + " config.json; context: model.context")
                Optional<Integer> positions,
        @Setting(
                        is = "0",
                        range = "[0, 1)",
                        doc =
                                "share of the embeddings, and of what attention and MLP of each"
                                        + " block add to them, that is dropped in training;"
                                        + " attention's probabilities are whole")
                double dropout,
        @Setting(
                        is = "usual",
                        word = "usual",
                        range = "[1, 1048576]",
                        doc = "of retnet: columns of a head's values; usual: 2 x model.head-size")
                Optional<Integer> valueSize,
        @Setting(is = "true", doc = "of retnet: a gate opens what leaves the heads") boolean gate,
        @Setting(
                        is = "usual",
                        doc =
                                "of retnet: how heads forget; usual: 1 - 2^(-5-head), large: as"
                                        + " the paper's large models, none: not at all")
                ModelKeys.DecayWord decay,
        @Setting(
                        is = "[]",
                        doc =
                                "of bert and megatron-bert: names of the classes of texts, of"
                                        + " which the head says the likeliest; empty: it predicts"
                                        + " hidden words")
                List<String> labels) {

    /** A GPT-2 with nothing unusual. */
    public ModelSection(
            int context,
            int width,
            int layers,
            int heads,
            boolean tied,
            Optional<Integer> vocabulary) {
        this(
                context,
                width,
                LayerList.of(layers),
                heads,
                tied,
                vocabulary,
                "gpt2",
                Optional.empty(),
                Optional.empty(),
                Optional.empty(),
                Optional.empty(),
                List.of("dense"),
                false,
                ModelKeys.ActivationWord.USUAL,
                Optional.empty(),
                Optional.empty(),
                List.of(),
                Optional.empty(),
                0,
                Optional.empty(),
                true,
                ModelKeys.DecayWord.USUAL,
                List.of());
    }

    /** Returns whether the head's matrix is the token table. */
    public boolean sharesTable() {
        return tied && labels.isEmpty();
    }

    /** Rows of the token embedding when the tokenizer has {@code tokens} tokens. */
    public int vocabularyOr(int tokens) {
        return vocabulary.orElse(tokens);
    }

    /**
     * The model's shape when the tokenizer has {@code tokens} tokens.
     *
     * @throws IllegalArgumentException if these values make no model of the family
     */
    public ModelShape shape(int tokens) {
        return ModelKeys.shape(this, vocabularyOr(tokens));
    }

    /**
     * The kinds of layers that each stage has, for people; empty where all layers of the model are
     * alike.
     */
    public static Optional<String> kindsOfStages(ModelShape shape, StagePartition partition) {
        List<String> kinds = ModelKeys.kinds(shape);
        if (kinds.stream().distinct().count() == 1) {
            return Optional.empty();
        }
        List<String> stages = new ArrayList<>();
        for (int stage = 0; stage < partition.stages(); stage++) {
            StageRole role = partition.role(stage);
            List<String> own = kinds.subList(role.firstLayer(), role.firstLayer() + role.layers());
            stages.add(
                    "stage %d: %s"
                            .formatted(
                                    stage,
                                    own.isEmpty()
                                            ? "none"
                                            : String.join(", ", LayerList.brief(own))));
        }
        return Optional.of(String.join("; ", stages));
    }

    /** The model as its checkpoints describe it, with all that {@link #from} says besides. */
    public ModelConfig config(int tokens) {
        ModelShape shape = shape(tokens);
        ModelConfig described =
                ModelConfig.of(
                        Families.find(family).orElseThrow(),
                        shape.withContext(shape.positions().most()));
        return from.flatMap(ModelKeys::readable)
                .filter(described::equals)
                .orElse(described)
                .dropping(dropout);
    }
}
