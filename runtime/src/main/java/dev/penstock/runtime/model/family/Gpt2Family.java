package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.BlockDesign.Activation;
import dev.penstock.runtime.model.shape.BlockDesign.Biases;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.Positions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * GPT-2 and what has its form: mGPT, Megatron's models, and GPT-3 with its layers of local
 * attention, which no published format of this family names; {@code attention_layers} and {@code
 * window_size} do, as in GPT-Neo's configuration.
 *
 * <p>Matrices are stored as {@code [in, out]}. Published models have bare names ({@code
 * wte.weight}, ..) or the prefix {@code transformer.}; a head of its own is read beside prefixed
 * names only.
 */
final class Gpt2Family implements Family {
    private static final String PREFIX = "transformer.";
    private static final String GLOBAL = "global";
    private static final String LOCAL = "local";

    /** Names of both activations. {@code gelu_pytorch_tanh} is the same function. */
    private static final List<String> TANH = List.of("gelu_new", "gelu_pytorch_tanh");

    private static final List<String> EXACT = List.of("gelu");

    @Override
    public String word() {
        return "gpt2";
    }

    @Override
    public ModelShape shape(ConfigJson config) {
        int width = config.size("n_embd");
        int heads = config.size("n_head");
        int layers = config.layers("n_layer");
        config.expect("scale_attn_weights", true);
        config.expect("add_cross_attention", false);
        config.expect("is_encoder_decoder", false);
        config.withoutEffect(
                "attn_pdrop",
                "embd_pdrop",
                "resid_pdrop",
                "n_ctx",
                "reorder_and_upcast_attn",
                "summary_activation",
                "summary_first_dropout",
                "summary_proj_to_labels",
                "summary_type",
                "summary_use_proj",
                "is_decoder");
        if (width % heads != 0) {
            config.refuse("n_head", "a divisor of n_embd = " + width);
            heads = 1;
        }
        var head =
                new HeadDesign(
                        heads,
                        heads,
                        width / heads,
                        false,
                        config.flagOr("scale_attn_by_inverse_layer_idx", false));
        var block =
                new BlockDesign(
                        new NormDesign(
                                NormDesign.Kind.LAYER,
                                config.epsilonOr("layer_norm_epsilon", 1e-5)),
                        head,
                        Biases.ALL,
                        activation(config),
                        config.sizeOr("n_inner", 4 * width),
                        windows(config, layers));
        int positions = config.size("n_positions");
        return new ModelShape(
                config.size("vocab_size"),
                positions,
                width,
                layers,
                block,
                new Positions.Learned(positions),
                config.flagOr("tie_word_embeddings", true));
    }

    private static Activation activation(ConfigJson config) {
        List<String> words = new ArrayList<>(TANH);
        words.addAll(EXACT);
        String word = config.wordOr("activation_function", TANH.getFirst(), words);
        return EXACT.contains(word) ? Activation.GELU : Activation.GELU_TANH;
    }

    private static List<Integer> windows(ConfigJson config, int layers) {
        List<String> kinds = config.words("attention_layers", List.of(GLOBAL, LOCAL));
        if (!kinds.contains(LOCAL)) {
            config.withoutEffect("window_size");
            return List.of();
        }
        int window = config.size("window_size");
        if (kinds.size() != layers) {
            config.refuse("attention_layers", "one word for each of %d layers".formatted(layers));
            return List.of();
        }
        return kinds.stream().map(kind -> kind.equals(LOCAL) ? window : BlockDesign.ALL).toList();
    }

    @Override
    public ModelShape usual(
            int vocabulary, int most, int width, int layers, int heads, boolean tied) {
        return ModelShape.gpt2(vocabulary, most, width, layers, heads, tied);
    }

    @Override
    public void describe(ModelShape shape, ObjectNode config) {
        BlockDesign block = shape.block();
        config.putArray("architectures").add("GPT2LMHeadModel");
        config.put("model_type", word());
        config.put("vocab_size", shape.vocabulary());
        config.put("n_positions", shape.positions().most());
        config.put("n_ctx", shape.positions().most());
        config.put("n_embd", shape.width());
        config.put("n_layer", shape.layers());
        config.put("n_head", shape.heads());
        if (block.hidden() != 4 * shape.width()) {
            config.put("n_inner", block.hidden());
        }
        List<String> words = block.activation() == Activation.GELU ? EXACT : TANH;
        config.put("activation_function", words.getFirst());
        config.put("layer_norm_epsilon", block.norm().epsilon());
        if (block.heads().scaledByLayer()) {
            config.put("scale_attn_by_inverse_layer_idx", true);
        }
        if (block.hasWindows()) {
            ArrayNode kinds = config.putArray("attention_layers");
            block.windows().forEach(w -> kinds.add(w == BlockDesign.ALL ? GLOBAL : LOCAL));
            config.put("window_size", Collections.max(block.windows()));
        }
        config.put("tie_word_embeddings", shape.tied());
        config.put("torch_dtype", "float32");
    }

    @Override
    public void describeDropout(double probability, ObjectNode config) {
        config.put("embd_pdrop", probability);
        config.put("resid_pdrop", probability);
        config.put("attn_pdrop", 0.0);
    }

    @Override
    public List<StoredPart> parts(ModelShape shape) {
        int d = shape.width();
        int f = shape.block().hidden();
        List<StoredPart> parts = new ArrayList<>();
        add(parts, shape, "wte.weight", shape.vocabulary(), d);
        add(parts, shape, "wpe.weight", shape.positions().most(), d);
        for (int layer = 0; layer < shape.layers(); layer++) {
            String h = "h." + layer + ".";
            norm(parts, shape, h + "ln_1");
            linear(parts, shape, h + "attn.c_attn", d, 3 * d);
            linear(parts, shape, h + "attn.c_proj", d, d);
            norm(parts, shape, h + "ln_2");
            linear(parts, shape, h + "mlp.c_fc", d, f);
            linear(parts, shape, h + "mlp.c_proj", f, d);
        }
        norm(parts, shape, "ln_f");
        if (!shape.tied()) {
            String head = "lm_head.weight";
            parts.add(StoredPart.whole(head, head, shape.vocabulary(), d));
        }
        return parts;
    }

    private static void norm(List<StoredPart> parts, ModelShape shape, String name) {
        add(parts, shape, name + ".weight", shape.width());
        add(parts, shape, name + ".bias", shape.width());
    }

    private static void linear(
            List<StoredPart> parts, ModelShape shape, String name, int in, int out) {
        add(parts, shape, name + ".weight", in, out);
        add(parts, shape, name + ".bias", out);
    }

    /** Parameters are called and lie as they do in this family. */
    private static void add(
            List<StoredPart> parts, ModelShape shape, String name, Integer... dimensions) {
        parts.add(StoredPart.whole(shape.tied() ? name : PREFIX + name, name, dimensions));
    }

    @Override
    public String prefix() {
        return PREFIX;
    }

    /** Old files carry causal masks. */
    @Override
    public boolean isConstant(String bareName) {
        return bareName.endsWith(".attn.bias") || bareName.endsWith(".attn.masked_bias");
    }
}
