package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.BlockDesign.Activation;
import dev.penstock.runtime.model.shape.BlockDesign.Biases;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.Positions.Rotary;
import dev.penstock.runtime.model.shape.RetentionDesign;
import dev.penstock.runtime.model.shape.RetentionDesign.Decay;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * RetNet (Sun et al., arXiv 2307.08621) with the names of torchscale's {@code RetNetDecoder}: its
 * arguments are the keys of {@code config.json}, its state's names those of the tensors. Three keys
 * are Penstock's own: {@code max_target_positions}, as the model itself has no longest sequence,
 * and {@code retention_gate} and {@code retention_decay} where they are unusual.
 *
 * <p>Layers may attend instead, to all tokens or to the last ones ({@code layer_types} and {@code
 * sliding_window}, as configurations of other families have them): their tensors are named as those
 * of torchscale's {@code Decoder}.
 *
 * <p>Matrices are stored as {@code [out, in]}; queries, keys, values and gates apart, as are both
 * halves of the hidden layer.
 */
final class RetNetFamily implements Family {
    private static final String GATE = "retention_gate";
    private static final String DECAY = "retention_decay";
    private static final String MOST = "max_target_positions";
    private static final double THETA = 10_000;

    /** Used where nothing is said of sequences: the length that the paper trains on. */
    private static final int USUAL_MOST = 2048;

    /** The hidden layer's usual width is a multiple of this. */
    private static final int HIDDEN_MULTIPLE = 64;

    private static final String KINDS = "layer_types";
    private static final String WINDOW = "sliding_window";
    private static final String RETENTION = "retention";
    private static final String FULL = "full_attention";
    private static final String SLIDING = "sliding_attention";

    private static final List<String> DECAYS = List.of("usual", "large", "none");

    @Override
    public String word() {
        return "retnet";
    }

    @Override
    public ModelShape shape(ConfigJson config) {
        int width = config.size("decoder_embed_dim");
        int heads = config.size("decoder_retention_heads");
        int values = config.size("decoder_value_embed_dim");
        int layers = config.layers("decoder_layers");
        config.wordOr("activation_fn", "gelu", List.of("gelu"));
        config.expect("decoder_normalize_before", true);
        config.expect("deepnorm", false);
        config.expect("subln", false);
        config.expect("layernorm_embedding", false);
        config.expect("no_scale_embedding", true);
        config.expect("no_output_layer", false);
        config.withoutEffect(
                "activation_dropout",
                "dropout",
                "drop_path_rate",
                "chunkwise_recurrent",
                "recurrent_chunk_size");
        if (width % heads != 0 || width / heads % 2 != 0) {
            config.refuse(
                    "decoder_retention_heads",
                    "heads of an even number of columns, which divide decoder_embed_dim = "
                            + width);
            heads = 1;
        }
        if (values % heads != 0) {
            config.refuse("decoder_value_embed_dim", "a multiple of %d heads".formatted(heads));
        }
        String decay = config.wordOr(DECAY, DECAYS.getFirst(), DECAYS);
        var retention =
                new RetentionDesign(
                        Math.max(1, values / heads),
                        config.flagOr(GATE, true),
                        Decay.valueOf(decay.toUpperCase(Locale.ROOT)));
        int size = Math.max(2, width / heads / 2 * 2);
        var block =
                new BlockDesign(
                        new NormDesign(
                                NormDesign.Kind.RMS, config.epsilonOr("layernorm_eps", 1e-6)),
                        new HeadDesign(heads, heads, size, false, false, retention),
                        Biases.NONE,
                        Activation.GEGLU,
                        config.size("decoder_ffn_embed_dim"),
                        windows(config, layers));
        int most = config.sizeOr(MOST, USUAL_MOST);
        return new ModelShape(
                config.size("vocab_size"),
                most,
                width,
                layers,
                block,
                places(most),
                config.flagOr("share_decoder_input_output_embed", false));
    }

    private static List<Integer> windows(ConfigJson config, int layers) {
        List<String> kinds = config.words(KINDS, List.of(RETENTION, FULL, SLIDING));
        if (!kinds.contains(SLIDING)) {
            config.withoutEffect(WINDOW);
        }
        if (!kinds.isEmpty() && kinds.size() != layers) {
            config.refuse(KINDS, "one word for each of %d layers".formatted(layers));
            return List.of();
        }
        int window = kinds.contains(SLIDING) ? config.size(WINDOW) : BlockDesign.ALL;
        return kinds.stream()
                .map(
                        kind ->
                                kind.equals(RETENTION)
                                        ? BlockDesign.RETAINED
                                        : kind.equals(FULL) ? BlockDesign.ALL : window)
                .toList();
    }

    private static Rotary places(int most) {
        return new Rotary(most, THETA, Optional.empty(), true);
    }

    /** With as many parameters as a GPT-2 of the same width. */
    @Override
    public ModelShape usual(
            int vocabulary, int most, int width, int layers, int heads, boolean tied) {
        int size = Math.max(2, width / heads / 2 * 2);
        var block =
                new BlockDesign(
                        new NormDesign(NormDesign.Kind.RMS, 1e-6),
                        new HeadDesign(
                                heads,
                                heads,
                                size,
                                false,
                                false,
                                new RetentionDesign(2 * size, true, Decay.USUAL)),
                        Biases.NONE,
                        Activation.GEGLU,
                        Math.toIntExact(Math.ceilDiv(4L * width, 3L * HIDDEN_MULTIPLE))
                                * HIDDEN_MULTIPLE,
                        List.of());
        return new ModelShape(vocabulary, most, width, layers, block, places(most), tied);
    }

    @Override
    public void describe(ModelShape shape, ObjectNode config) {
        BlockDesign block = shape.block();
        HeadDesign heads = block.heads();
        config.putArray("architectures").add("RetNetDecoder");
        config.put("model_type", word());
        config.put("vocab_size", shape.vocabulary());
        config.put(MOST, shape.positions().most());
        config.put("decoder_embed_dim", shape.width());
        config.put("decoder_value_embed_dim", heads.outputColumns());
        config.put("decoder_retention_heads", heads.queries());
        config.put("decoder_ffn_embed_dim", block.hidden());
        config.put("decoder_layers", shape.layers());
        config.put("activation_fn", "gelu");
        config.put("layernorm_eps", block.norm().epsilon());
        config.put("decoder_normalize_before", true);
        config.put("deepnorm", false);
        config.put("layernorm_embedding", false);
        config.put("no_scale_embedding", true);
        config.put("share_decoder_input_output_embed", shape.tied());
        describeKinds(shape, config);
        RetentionDesign retention = heads.retention();
        if (retention != null && !retention.gated()) {
            config.put(GATE, false);
        }
        if (retention != null && retention.decay() != Decay.USUAL) {
            config.put(DECAY, retention.decay().name().toLowerCase(Locale.ROOT));
        }
    }

    private static void describeKinds(ModelShape shape, ObjectNode config) {
        BlockDesign block = shape.block();
        if (block.windows().isEmpty()) {
            return;
        }
        ArrayNode kinds = config.putArray(KINDS);
        for (int layer = 0; layer < shape.layers(); layer++) {
            boolean full = block.window(layer) == BlockDesign.ALL;
            kinds.add(block.retains(layer) ? RETENTION : full ? FULL : SLIDING);
        }
        if (block.hasWindows()) {
            config.put(WINDOW, Collections.max(block.windows()));
        }
    }

    @Override
    public void describeDropout(double probability, ObjectNode config) {
        config.put("dropout", probability);
    }

    @Override
    public List<StoredPart> parts(ModelShape shape) {
        BlockDesign block = shape.block();
        int d = shape.width();
        int q = block.heads().queryColumns();
        int f = block.hidden();
        List<StoredPart> parts = new ArrayList<>();
        parts.add(StoredPart.whole("embed_tokens.weight", "wte.weight", shape.vocabulary(), d));
        for (int layer = 0; layer < shape.layers(); layer++) {
            String theirs = "layers." + layer + ".";
            String ours = "h." + layer + ".";
            String half = theirs + (block.retains(layer) ? RETENTION : "self_attn");
            int v = block.heads(layer).outputColumns();
            String into = ours + "attn.c_attn.weight";
            parts.add(matrix(half + ".q_proj", into, d, 0, q));
            parts.add(matrix(half + ".k_proj", into, d, q, q));
            parts.add(matrix(half + ".v_proj", into, d, 2 * q, v));
            RetentionDesign retention = block.heads(layer).retention();
            if (retention != null && retention.gated()) {
                parts.add(matrix(half + ".g_proj", into, d, 2 * q + v, v));
            }
            String out = ours + "attn.c_proj.weight";
            parts.add(matrix(half + ".out_proj", out, v, 0, d));
            parts.add(gain(half + "_layer_norm", ours + "ln_1", d));
            String hidden = ours + "mlp.c_fc.weight";
            parts.add(matrix(theirs + "ffn.fc1", hidden, d, 0, f));
            parts.add(matrix(theirs + "ffn.gate", hidden, d, f, f));
            parts.add(matrix(theirs + "ffn.fc2", ours + "mlp.c_proj.weight", f, 0, d));
            parts.add(gain(theirs + "final_layer_norm", ours + "ln_2", d));
        }
        parts.add(gain("layer_norm", "ln_f", d));
        if (!shape.tied()) {
            parts.add(
                    StoredPart.whole(
                            "output_projection.weight", "lm_head.weight", shape.vocabulary(), d));
        }
        return parts;
    }

    private static StoredPart gain(String theirs, String ours, int size) {
        return StoredPart.whole(theirs + ".weight", ours + ".weight", size);
    }

    private static StoredPart matrix(String theirs, String ours, int in, int first, int out) {
        return new StoredPart(theirs + ".weight", ours, List.of(out, in), first, true);
    }

    @Override
    public String prefix() {
        return "";
    }

    /** Files carry the angles of turns and the decays. */
    @Override
    public boolean isConstant(String bareName) {
        return bareName.startsWith("retnet_rel_pos.");
    }
}
