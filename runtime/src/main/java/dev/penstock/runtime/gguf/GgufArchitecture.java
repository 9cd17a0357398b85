package dev.penstock.runtime.gguf;

import dev.penstock.runtime.model.family.ConfigJson;
import dev.penstock.runtime.safetensors.TensorSource;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What GGUF calls the parts of a family of models: one table for each. Left Hugging Face's name of
 * a layer, {@code {}} for its number; right GGUF's; both without {@code .weight} and {@code .bias}.
 */
enum GgufArchitecture {
    GPT2("gpt2") {
        @Override
        List<Rule> rules() {
            return List.of(
                    rule("wte", "token_embd"),
                    rule("wpe", "position_embd"),
                    rule("h.{}.ln_1", "blk.{}.attn_norm"),
                    rule("h.{}.attn.c_attn", "blk.{}.attn_qkv", Change.TRANSPOSED),
                    rule("h.{}.attn.c_proj", "blk.{}.attn_output", Change.TRANSPOSED),
                    rule("h.{}.ln_2", "blk.{}.ffn_norm"),
                    rule("h.{}.mlp.c_fc", "blk.{}.ffn_up", Change.TRANSPOSED),
                    rule("h.{}.mlp.c_proj", "blk.{}.ffn_down", Change.TRANSPOSED),
                    rule("ln_f", "output_norm"),
                    rule("lm_head", "output"));
        }

        @Override
        Map<String, GgufValue> facts(ConfigJson config) {
            config.expect("activation_function", "gelu_new", "gelu_pytorch_tanh");
            config.expect("scale_attn_weights", "true");
            config.expect("scale_attn_by_inverse_layer_idx", "false");
            for (var layer : config.value("attention_layers")) {
                if (!layer.asText().equals("global")) {
                    config.refuse("attention_layers", "global alone", layer.toString());
                    break;
                }
            }
            int width = config.size("n_embd");
            Map<String, GgufValue> facts = new LinkedHashMap<>();
            facts.put("block_count", count(config.size("n_layer")));
            facts.put("context_length", count(config.size("n_positions")));
            facts.put("embedding_length", count(width));
            facts.put("feed_forward_length", count(config.sizeOr("n_inner", 4 * width)));
            facts.put("attention.head_count", count(config.size("n_head")));
            facts.put(
                    "attention.layer_norm_epsilon",
                    new GgufValue.Real(config.positive("layer_norm_epsilon")));
            return facts;
        }
    },

    /** Llama, and Mistral without its window. Rotary positions turn neighbours. */
    LLAMA("llama") {
        @Override
        List<Rule> rules() {
            return rotaryRules(Change.QUERIES, Change.KEYS);
        }

        @Override
        Map<String, GgufValue> facts(ConfigJson config) {
            if (config.sizeOr("sliding_window", Integer.MAX_VALUE)
                    < config.size("max_position_embeddings")) {
                config.refuse(
                        "sliding_window",
                        "none below max_position_embeddings, since engines attend to all"
                                + " positions");
            }
            Map<String, GgufValue> facts = rotaryFacts(config);
            facts.put("vocab_size", count(config.size("vocab_size")));
            facts.put("rope.dimension_count", count(head(config)));
            return facts;
        }

        @Override
        Optional<TensorSource> more(ConfigJson config) {
            return RotaryScale.factors(config, head(config));
        }
    },

    QWEN2("qwen2") {
        @Override
        List<Rule> rules() {
            return rotaryRules(Change.NONE, Change.NONE);
        }

        @Override
        Map<String, GgufValue> facts(ConfigJson config) {
            config.expect("use_sliding_window", "false");
            return rotaryFacts(config);
        }
    },

    QWEN3("qwen3") {
        @Override
        List<Rule> rules() {
            return rotaryRules(Change.NONE, Change.NONE);
        }

        @Override
        Map<String, GgufValue> facts(ConfigJson config) {
            config.expect("use_sliding_window", "false");
            return rotaryFacts(config);
        }
    };

    private static final Pattern NUMBER = Pattern.compile("\\.(\\d+)\\.");

    private final String ggufName;

    GgufArchitecture(String ggufName) {
        this.ggufName = ggufName;
    }

    /** How elements move. */
    enum Change {
        NONE,
        /** From [in, out] to [out, in]. */
        TRANSPOSED,
        /** As {@link Rearranged#withNeighboursTurned}, for the heads of queries. */
        QUERIES,
        /** The same for the heads of keys. */
        KEYS
    }

    /** A row of a table. */
    record Rule(String published, String ggufName, Change change) {}

    /** Returns the table of names. */
    abstract List<Rule> rules();

    /**
     * Returns metadata of this architecture, by key without its name; notes in {@code config} what
     * cannot be said.
     */
    abstract Map<String, GgufValue> facts(ConfigJson config);

    /** Returns a tensor that has no counterpart among the model's. */
    Optional<TensorSource> more(ConfigJson config) {
        return Optional.empty();
    }

    /** Returns the name in files. */
    String ggufName() {
        return ggufName;
    }

    /** Finds the architecture of a {@code model_type} of Hugging Face. */
    static Optional<GgufArchitecture> of(String modelType) {
        return switch (modelType) {
            case "gpt2" -> Optional.of(GPT2);
            case "llama", "mistral" -> Optional.of(LLAMA);
            case "qwen2" -> Optional.of(QWEN2);
            case "qwen3" -> Optional.of(QWEN3);
            default -> Optional.empty();
        };
    }

    /**
     * Returns a tensor as GGUF has it.
     *
     * @param published with Hugging Face's name, without GPT-2's {@code transformer.}
     * @return empty if the table lacks its name
     */
    Optional<TensorSource> translated(TensorSource published, ConfigJson config) {
        String name = published.name();
        int dot = name.lastIndexOf('.');
        String stem = dot < 0 ? name : name.substring(0, dot);
        String part = dot < 0 ? "" : name.substring(dot);
        Matcher number = NUMBER.matcher(stem + ".");
        String layer = number.find() ? number.group(1) : "";
        String general =
                layer.isEmpty() ? stem : stem.replaceFirst("\\." + layer + "(?=\\.)", ".{}");
        boolean known = part.equals(".weight") || part.equals(".bias");
        return rules().stream()
                .filter(rule -> known && rule.published().equals(general))
                .findFirst()
                .map(
                        rule ->
                                changed(published, rule.change(), config)
                                        .named(rule.ggufName().replace("{}", layer) + part));
    }

    private static TensorSource changed(TensorSource tensor, Change change, ConfigJson config) {
        return switch (change) {
            case NONE -> tensor;
            case TRANSPOSED -> tensor.shape().size() == 2 ? Rearranged.transposed(tensor) : tensor;
            case QUERIES ->
                    Rearranged.withNeighboursTurned(tensor, config.size("num_attention_heads"));
            case KEYS -> Rearranged.withNeighboursTurned(tensor, keyHeads(config));
        };
    }

    private static Rule rule(String published, String gguf) {
        return new Rule(published, gguf, Change.NONE);
    }

    private static Rule rule(String published, String gguf, Change change) {
        return new Rule(published, gguf, change);
    }

    private static List<Rule> rotaryRules(Change queries, Change keys) {
        String layer = "model.layers.{}.";
        return List.of(
                rule("model.embed_tokens", "token_embd"),
                rule(layer + "input_layernorm", "blk.{}.attn_norm"),
                rule(layer + "self_attn.q_proj", "blk.{}.attn_q", queries),
                rule(layer + "self_attn.k_proj", "blk.{}.attn_k", keys),
                rule(layer + "self_attn.v_proj", "blk.{}.attn_v"),
                rule(layer + "self_attn.o_proj", "blk.{}.attn_output"),
                rule(layer + "self_attn.q_norm", "blk.{}.attn_q_norm"),
                rule(layer + "self_attn.k_norm", "blk.{}.attn_k_norm"),
                rule(layer + "post_attention_layernorm", "blk.{}.ffn_norm"),
                rule(layer + "mlp.gate_proj", "blk.{}.ffn_gate"),
                rule(layer + "mlp.up_proj", "blk.{}.ffn_up"),
                rule(layer + "mlp.down_proj", "blk.{}.ffn_down"),
                rule("model.norm", "output_norm"),
                rule("lm_head", "output"));
    }

    private static Map<String, GgufValue> rotaryFacts(ConfigJson config) {
        config.expect("hidden_act", "silu");
        int head = head(config);
        Map<String, GgufValue> facts = new LinkedHashMap<>();
        facts.put("block_count", count(config.size("num_hidden_layers")));
        facts.put("context_length", count(config.size("max_position_embeddings")));
        facts.put("embedding_length", count(config.size("hidden_size")));
        facts.put("feed_forward_length", count(config.size("intermediate_size")));
        facts.put("attention.head_count", count(config.size("num_attention_heads")));
        facts.put("attention.head_count_kv", count(keyHeads(config)));
        facts.put("attention.key_length", count(head));
        facts.put("attention.value_length", count(head));
        facts.put(
                "attention.layer_norm_rms_epsilon",
                new GgufValue.Real(config.positive("rms_norm_eps")));
        facts.put("rope.freq_base", new GgufValue.Real(RotaryScale.theta(config)));
        facts.putAll(RotaryScale.facts(config));
        return facts;
    }

    private static int head(ConfigJson config) {
        return config.sizeOr(
                "head_dim", config.size("hidden_size") / config.size("num_attention_heads"));
    }

    private static int keyHeads(ConfigJson config) {
        return config.sizeOr("num_key_value_heads", config.size("num_attention_heads"));
    }

    private static GgufValue count(int value) {
        return new GgufValue.Count(value);
    }
}
