package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.BlockDesign.Activation;
import dev.penstock.runtime.model.shape.BlockDesign.Biases;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.Positions.Rotary;
import dev.penstock.runtime.model.shape.Positions.Stretch;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Llama 2 and 3, and those who build alike: norms by the root mean square, turned heads, gated MLPs
 * and no biases. Mistral adds a window, Qwen2 biases of queries, keys and values, Qwen3 norms of
 * heads. What a configuration leaves out is what transformers takes for it.
 *
 * <p>Matrices are stored as {@code [out, in]}; queries, keys and values apart, gate and up apart.
 * Some files leave out the prefix {@code model.}.
 */
enum LlamaFamily implements Family {
    LLAMA("LlamaForCausalLM"),
    MISTRAL("MistralForCausalLM"),
    QWEN2("Qwen2ForCausalLM"),
    QWEN3("Qwen3ForCausalLM");

    private static final String PREFIX = "model.";
    private static final String HEAD = "lm_head.weight";
    private static final String FULL = "full_attention";
    private static final String SLIDING = "sliding_attention";

    /** The hidden layer's usual width is a multiple of this. */
    private static final int HIDDEN_MULTIPLE = 64;

    /** Used where nothing is said of a window. */
    private static final int USUAL_WINDOW = 4096;

    private final String architecture;

    LlamaFamily(String architecture) {
        this.architecture = architecture;
    }

    @Override
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }

    @Override
    public ModelShape shape(ConfigJson config) {
        int width = config.size("hidden_size");
        int layers = config.layers("num_hidden_layers");
        config.wordOr("hidden_act", "silu", List.of("silu"));
        config.expect("attention_bias", false);
        config.expect("mlp_bias", false);
        config.expect("partial_rotary_factor", 1);
        config.expect("is_encoder_decoder", false);
        config.withoutEffect("pretraining_tp");
        var block =
                new BlockDesign(
                        new NormDesign(NormDesign.Kind.RMS, config.epsilonOr("rms_norm_eps", 1e-6)),
                        heads(config, width),
                        this == QWEN2 ? Biases.QUERY_KEY_VALUE : Biases.NONE,
                        Activation.SWIGLU,
                        config.size("intermediate_size"),
                        windows(config, layers));
        Rotary places = places(config);
        return new ModelShape(
                config.size("vocab_size"),
                places.most(),
                width,
                layers,
                block,
                places,
                config.flagOr("tie_word_embeddings", false));
    }

    private HeadDesign heads(ConfigJson config, int width) {
        int heads = config.size("num_attention_heads");
        // null says "as many as heads" in all of them
        boolean said = config.isNull("num_key_value_heads");
        int keys = config.sizeOr("num_key_value_heads", said ? heads : unsaidKeys(heads));
        if (heads % keys != 0) {
            String expected = "a divisor of num_attention_heads = %d".formatted(heads);
            if (config.has("num_key_value_heads")) {
                config.refuse("num_key_value_heads", expected);
            } else {
                config.refuse("num_key_value_heads", expected, "nothing, which means " + keys);
            }
            keys = heads;
        }
        if (!config.has("head_dim") && width % heads != 0) {
            config.refuse("num_attention_heads", "a divisor of hidden_size = " + width);
        }
        int usual = this == QWEN3 ? 128 : Math.max(1, width / heads);
        int size = config.sizeOr("head_dim", usual);
        if (size % 2 != 0) {
            config.refuse("head_dim", "an even number: columns of a head turn in pairs");
            size++;
        }
        return new HeadDesign(heads, keys, size, this == QWEN3, false);
    }

    /** Returns how many heads of keys there are where nothing is said of them. */
    private int unsaidKeys(int heads) {
        return switch (this) {
            case LLAMA -> heads;
            case MISTRAL -> 8;
            case QWEN2, QWEN3 -> 32;
        };
    }

    private List<Integer> windows(ConfigJson config, int layers) {
        if (this == LLAMA) {
            return List.of();
        }
        boolean asked = this == MISTRAL || config.flagOr("use_sliding_window", false);
        int from = this == MISTRAL ? 0 : config.countOr("max_window_layers", 28);
        List<String> kinds = config.words("layer_types", List.of(FULL, SLIDING));
        if (!kinds.isEmpty() && kinds.size() != layers) {
            config.refuse("layer_types", "one word for each of %d layers".formatted(layers));
            return List.of();
        }
        if (this == MISTRAL && kinds.contains(FULL) && kinds.contains(SLIDING)) {
            config.refuse("layer_types", "one word for all layers, as others compute a mistral");
            return List.of();
        }
        boolean none = config.isNull("sliding_window") || (!asked && kinds.isEmpty());
        if (none || !(kinds.isEmpty() || kinds.contains(SLIDING))) {
            config.withoutEffect("sliding_window");
            if (kinds.contains(SLIDING)) {
                config.refuse(
                        "sliding_window", "a whole number from 1, as layer_types asks for it");
            }
            return List.of();
        }
        int window = config.sizeOr("sliding_window", USUAL_WINDOW);
        return IntStream.range(0, layers)
                .map(
                        layer -> {
                            boolean slides =
                                    kinds.isEmpty()
                                            ? layer >= from
                                            : kinds.get(layer).equals(SLIDING);
                            return slides ? window : BlockDesign.ALL;
                        })
                .boxed()
                .toList();
    }

    /** Both forms of published configurations: an object with everything, or theta beside it. */
    private static Rotary places(ConfigJson config) {
        int most = config.size("max_position_embeddings");
        Optional<ConfigJson> whole = config.object("rope_parameters");
        Optional<ConfigJson> scaling = config.object("rope_scaling");
        if (whole.isPresent() && scaling.isPresent()) {
            config.refuse("rope_scaling", "nothing, as there are rope_parameters");
        }
        double theta = config.positiveOr("rope_theta", 10_000);
        double told = whole.map(rope -> rope.positiveOr("rope_theta", theta)).orElse(theta);
        if (whole.isPresent() && config.has("rope_theta") && told != theta) {
            config.refuse("rope_theta", "%s as in rope_parameters".formatted(told));
        }
        return new Rotary(most, told, whole.or(() -> scaling).flatMap(LlamaFamily::stretch));
    }

    private static Optional<Stretch> stretch(ConfigJson rope) {
        List<String> known = List.of("default", "llama3");
        String type = rope.wordOr(rope.has("rope_type") ? "rope_type" : "type", "default", known);
        rope.withoutEffect("type");
        rope.expect("partial_rotary_factor", 1);
        Optional<Stretch> stretch = Optional.empty();
        if (type.equals("llama3")) {
            double factor = rope.positive("factor");
            double low = rope.positive("low_freq_factor");
            double high = rope.positive("high_freq_factor");
            int original = rope.size("original_max_position_embeddings");
            if (factor < 1) {
                rope.refuse("factor", "1 or more");
            } else if (high <= low) {
                rope.refuse("high_freq_factor", "more than low_freq_factor = " + low);
            } else {
                stretch = Optional.of(new Stretch(factor, low, high, original));
            }
        }
        rope.refuseOthers();
        return stretch;
    }

    @Override
    public ModelShape usual(
            int vocabulary, int most, int width, int layers, int heads, boolean tied) {
        boolean qwen = this == QWEN2 || this == QWEN3;
        int size = Math.max(2, width / heads / 2 * 2);
        var block =
                new BlockDesign(
                        new NormDesign(NormDesign.Kind.RMS, qwen ? 1e-6 : 1e-5),
                        new HeadDesign(heads, heads, size, this == QWEN3, false),
                        this == QWEN2 ? Biases.QUERY_KEY_VALUE : Biases.NONE,
                        Activation.SWIGLU,
                        Math.toIntExact(Math.ceilDiv(8L * width, 3L * HIDDEN_MULTIPLE))
                                * HIDDEN_MULTIPLE,
                        List.of());
        var places = new Rotary(most, qwen ? 1_000_000 : 10_000, Optional.empty());
        return new ModelShape(vocabulary, most, width, layers, block, places, tied);
    }

    @Override
    public void describe(ModelShape shape, ObjectNode config) {
        BlockDesign block = shape.block();
        HeadDesign heads = block.heads();
        config.putArray("architectures").add(architecture);
        config.put("model_type", word());
        config.put("vocab_size", shape.vocabulary());
        config.put("max_position_embeddings", shape.positions().most());
        config.put("hidden_size", shape.width());
        config.put("intermediate_size", block.hidden());
        config.put("num_hidden_layers", shape.layers());
        config.put("num_attention_heads", heads.queries());
        config.put("num_key_value_heads", heads.keys());
        if (this == QWEN3 || heads.queryColumns() != shape.width()) {
            config.put("head_dim", heads.size());
        }
        config.put("hidden_act", "silu");
        config.put("rms_norm_eps", block.norm().epsilon());
        if (shape.positions() instanceof Rotary rotary) {
            config.put("rope_theta", rotary.theta());
            rotary.stretch().ifPresent(stretch -> describe(stretch, config));
        }
        if (this == LLAMA) {
            config.put("attention_bias", false);
            config.put("mlp_bias", false);
        } else {
            describeWindows(block, shape.layers(), config);
        }
        config.put("tie_word_embeddings", shape.tied());
        config.put("torch_dtype", "float32");
    }

    private static void describe(Stretch stretch, ObjectNode config) {
        config.putObject("rope_scaling")
                .put("rope_type", "llama3")
                .put("factor", stretch.factor())
                .put("low_freq_factor", stretch.low())
                .put("high_freq_factor", stretch.high())
                .put("original_max_position_embeddings", stretch.original());
    }

    private void describeWindows(BlockDesign block, int layers, ObjectNode config) {
        if (!block.hasWindows()) {
            config.putNull("sliding_window");
            if (this != MISTRAL) {
                config.put("use_sliding_window", false);
            }
            return;
        }
        config.put("sliding_window", Collections.max(block.windows()));
        if (this != MISTRAL) {
            config.put("use_sliding_window", true);
        }
        if (this != MISTRAL) { // whose layers are all alike
            var kinds = config.putArray("layer_types");
            for (int layer = 0; layer < layers; layer++) {
                kinds.add(block.window(layer) == BlockDesign.ALL ? FULL : SLIDING);
            }
        }
    }

    @Override
    public List<StoredPart> parts(ModelShape shape) {
        int d = shape.width();
        BlockDesign block = shape.block();
        int q = block.heads().queryColumns();
        int k = block.heads().keyColumns();
        int f = block.hidden();
        List<StoredPart> parts = new ArrayList<>();
        parts.add(
                StoredPart.whole(
                        PREFIX + "embed_tokens.weight", "wte.weight", shape.vocabulary(), d));
        for (int layer = 0; layer < shape.layers(); layer++) {
            String theirs = PREFIX + "layers." + layer + ".";
            String ours = "h." + layer + ".";
            parts.add(gain(theirs + "input_layernorm", ours + "ln_1", d));
            String qkv = ours + "attn.c_attn.weight";
            parts.add(matrix(theirs + "self_attn.q_proj", qkv, d, 0, q));
            parts.add(matrix(theirs + "self_attn.k_proj", qkv, d, q, k));
            parts.add(matrix(theirs + "self_attn.v_proj", qkv, d, q + k, k));
            if (block.queryKeyValueBias()) {
                String bias = ours + "attn.c_attn.bias";
                parts.add(bias(theirs + "self_attn.q_proj", bias, 0, q));
                parts.add(bias(theirs + "self_attn.k_proj", bias, q, k));
                parts.add(bias(theirs + "self_attn.v_proj", bias, q + k, k));
            }
            if (block.heads().norms()) {
                int size = block.heads().size();
                parts.add(gain(theirs + "self_attn.q_norm", ours + "attn.q_norm", size));
                parts.add(gain(theirs + "self_attn.k_norm", ours + "attn.k_norm", size));
            }
            parts.add(matrix(theirs + "self_attn.o_proj", ours + "attn.c_proj.weight", q, 0, d));
            parts.add(gain(theirs + "post_attention_layernorm", ours + "ln_2", d));
            String hidden = ours + "mlp.c_fc.weight";
            parts.add(matrix(theirs + "mlp.gate_proj", hidden, d, 0, f));
            parts.add(matrix(theirs + "mlp.up_proj", hidden, d, f, f));
            parts.add(matrix(theirs + "mlp.down_proj", ours + "mlp.c_proj.weight", f, 0, d));
        }
        parts.add(gain(PREFIX + "norm", "ln_f", d));
        if (!shape.tied()) {
            parts.add(StoredPart.whole(HEAD, HEAD, shape.vocabulary(), d));
        }
        return parts;
    }

    private static StoredPart gain(String theirs, String ours, int size) {
        return StoredPart.whole(theirs + ".weight", ours + ".weight", size);
    }

    private static StoredPart matrix(String theirs, String ours, int in, int first, int out) {
        return new StoredPart(theirs + ".weight", ours, List.of(out, in), first, true);
    }

    private static StoredPart bias(String theirs, String ours, int first, int out) {
        return new StoredPart(theirs + ".bias", ours, List.of(out), first, false);
    }

    @Override
    public String prefix() {
        return PREFIX;
    }

    /** Old files carry the frequencies of turns. */
    @Override
    public boolean isConstant(String bareName) {
        return bareName.endsWith(".rotary_emb.inv_freq");
    }
}
