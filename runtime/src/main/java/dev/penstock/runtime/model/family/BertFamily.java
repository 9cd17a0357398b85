package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.BlockDesign.Activation;
import dev.penstock.runtime.model.shape.BlockDesign.Biases;
import dev.penstock.runtime.model.shape.EncoderDesign;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.Positions;
import java.util.ArrayList;
import java.util.List;

/**
 * BERT, which predicts hidden words from both sides (Devlin et al., arXiv 1810.04805), and
 * Megatron's form of it, whose norms stand before the branches (arXiv 1909.08053, section 3):
 * {@code BertForMaskedLM} and {@code MegatronBertForMaskedLM}, and {@code
 * BertForSequenceClassification} and Megatron's. The prediction of the next sentence is not read.
 *
 * <p>Matrices are stored as {@code [out, in]}; queries, keys and values apart. A norm behind a
 * branch is Penstock's norm before the next one, see {@link EncoderDesign}.
 */
enum BertFamily implements Family {
    /** Norms of the sums. */
    POST("bert", "Bert"),
    /** Norms before the branches. */
    PRE("megatron-bert", "MegatronBert");

    private static final String PREFIX = "bert.";
    private static final double EPSILON = 1e-12;
    private static final int TYPES = 2;
    private static final String EXACT = "gelu";

    /** Names of the other activation. */
    private static final List<String> TANH = List.of("gelu_new", "gelu_pytorch_tanh");

    private static final String ONE_CLASS = "single_label_classification";
    private static final String CLASSIFIES = "ForSequenceClassification";
    private static final List<String> HEADS = List.of("cls.", "pooler.", "classifier.");

    private final String word;
    private final String architecture;

    BertFamily(String word, String architecture) {
        this.word = word;
        this.architecture = architecture;
    }

    @Override
    public String word() {
        return word;
    }

    @Override
    public ModelShape shape(ConfigJson config) {
        int width = config.size("hidden_size");
        int heads = config.size("num_attention_heads");
        int layers = config.layers("num_hidden_layers");
        config.wordOr("position_embedding_type", "absolute", List.of("absolute"));
        config.expect("is_decoder", false);
        config.expect("add_cross_attention", false);
        config.expect("tie_word_embeddings", true);
        config.withoutEffect(
                "attention_probs_dropout_prob",
                "hidden_dropout_prob",
                "classifier_dropout",
                "directionality",
                "pooler_fc_size",
                "pooler_num_attention_heads",
                "pooler_num_fc_layers",
                "pooler_size_per_head",
                "pooler_type");
        if (width % heads != 0) {
            config.refuse("num_attention_heads", "a divisor of hidden_size = " + width);
            heads = 1;
        }
        List<String> words = new ArrayList<>(TANH);
        words.add(EXACT);
        boolean exact = config.wordOr("hidden_act", EXACT, words).equals(EXACT);
        var block =
                new BlockDesign(
                        new NormDesign(
                                NormDesign.Kind.LAYER, config.epsilonOr("layer_norm_eps", EPSILON)),
                        new HeadDesign(heads, heads, width / heads, false, false),
                        Biases.ALL,
                        exact ? Activation.GELU : Activation.GELU_TANH,
                        config.size("intermediate_size"),
                        List.of(),
                        new EncoderDesign(
                                config.sizeOr("type_vocab_size", TYPES),
                                this == POST,
                                labels(config)));
        int positions = config.size("max_position_embeddings");
        return new ModelShape(
                config.size("vocab_size"),
                positions,
                width,
                layers,
                block,
                new Positions.Learned(positions),
                block.encoder() == null || !block.encoder().classifies());
    }

    /** Where nothing is said, a classifier has two classes, as in transformers. */
    private static List<String> labels(ConfigJson config) {
        boolean classifies = false;
        for (JsonNode name : config.value("architectures")) {
            classifies |= name.asText().endsWith(CLASSIFIES);
        }
        if (!classifies) {
            return List.of();
        }
        config.wordOr("problem_type", ONE_CLASS, List.of(ONE_CLASS));
        JsonNode names = config.value("id2label");
        int count = names.isObject() ? names.size() : config.sizeOr("num_labels", 2);
        List<String> labels = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            labels.add(names.path(String.valueOf(i)).asText("LABEL_" + i));
        }
        if (labels.stream().distinct().count() < Math.max(2, count)) {
            config.refuse("id2label", "the names of two classes or more");
            return List.of();
        }
        return labels;
    }

    @Override
    public ModelShape usual(
            int vocabulary, int most, int width, int layers, int heads, boolean tied) {
        ModelShape gpt2 = ModelShape.gpt2(vocabulary, most, width, layers, heads, true);
        BlockDesign block = gpt2.block();
        return new ModelShape(
                vocabulary,
                most,
                width,
                layers,
                new BlockDesign(
                        new NormDesign(NormDesign.Kind.LAYER, EPSILON),
                        block.heads(),
                        Biases.ALL,
                        Activation.GELU,
                        block.hidden(),
                        List.of(),
                        new EncoderDesign(TYPES, this == POST)),
                gpt2.positions(),
                tied);
    }

    @Override
    public void describe(ModelShape shape, ObjectNode config) {
        BlockDesign block = shape.block();
        EncoderDesign encoder = block.encoder();
        boolean classifies = encoder != null && encoder.classifies();
        config.putArray("architectures")
                .add(architecture + (classifies ? CLASSIFIES : "ForMaskedLM"));
        config.put("model_type", word);
        config.put("vocab_size", shape.vocabulary());
        config.put("max_position_embeddings", shape.positions().most());
        config.put("type_vocab_size", encoder == null ? TYPES : encoder.tokenTypes());
        config.put("hidden_size", shape.width());
        config.put("num_hidden_layers", shape.layers());
        config.put("num_attention_heads", shape.heads());
        config.put("intermediate_size", block.hidden());
        config.put(
                "hidden_act", block.activation() == Activation.GELU_TANH ? TANH.getFirst() : EXACT);
        config.put("layer_norm_eps", block.norm().epsilon());
        config.put("position_embedding_type", "absolute");
        config.put("hidden_dropout_prob", 0.0);
        config.put("attention_probs_dropout_prob", 0.0);
        config.put("tie_word_embeddings", true);
        config.put("torch_dtype", "float32");
        if (encoder != null && classifies) {
            config.put("problem_type", ONE_CLASS);
            ObjectNode names = config.putObject("id2label");
            ObjectNode numbers = config.putObject("label2id");
            for (int i = 0; i < encoder.labels().size(); i++) {
                names.put(String.valueOf(i), encoder.labels().get(i));
                numbers.put(encoder.labels().get(i), i);
            }
        }
    }

    @Override
    public void describeDropout(double probability, ObjectNode config) {
        config.put("hidden_dropout_prob", probability);
    }

    @Override
    public List<StoredPart> parts(ModelShape shape) {
        int d = shape.width();
        int f = shape.block().hidden();
        EncoderDesign encoder = shape.block().encoder();
        String tables = PREFIX + "embeddings.";
        List<StoredPart> parts = new ArrayList<>();
        parts.add(table(tables + "word_embeddings", "wte", shape.vocabulary(), d));
        parts.add(table(tables + "position_embeddings", "wpe", shape.positions().most(), d));
        int types = encoder == null ? TYPES : encoder.tokenTypes();
        parts.add(table(tables + "token_type_embeddings", "wtt", types, d));
        if (this == POST) {
            norm(parts, tables + "LayerNorm", "h.0.ln_1", d);
        }
        for (int layer = 0; layer < shape.layers(); layer++) {
            String theirs = PREFIX + "encoder.layer." + layer + ".";
            String ours = "h." + layer + ".";
            if (this == PRE) {
                norm(parts, theirs + "attention.ln", ours + "ln_1", d);
            }
            String qkv = ours + "attn.c_attn";
            linear(parts, theirs + "attention.self.query", qkv, d, 0, d);
            linear(parts, theirs + "attention.self.key", qkv, d, d, d);
            linear(parts, theirs + "attention.self.value", qkv, d, 2 * d, d);
            linear(parts, theirs + "attention.output.dense", ours + "attn.c_proj", d, 0, d);
            norm(
                    parts,
                    theirs + (this == POST ? "attention.output.LayerNorm" : "ln"),
                    ours + "ln_2",
                    d);
            linear(parts, theirs + "intermediate.dense", ours + "mlp.c_fc", d, 0, f);
            linear(parts, theirs + "output.dense", ours + "mlp.c_proj", f, 0, d);
            if (this == POST) {
                boolean last = layer + 1 == shape.layers();
                String next = last ? "ln_f" : "h." + (layer + 1) + ".ln_1";
                norm(parts, theirs + "output.LayerNorm", next, d);
            }
        }
        if (this == PRE) {
            norm(parts, PREFIX + "encoder.ln", "ln_f", d);
        }
        if (encoder != null && encoder.classifies()) {
            int classes = shape.outputs();
            linear(parts, PREFIX + "pooler.dense", "pooler", d, 0, d);
            parts.add(table("classifier", "classifier", classes, d));
            parts.add(StoredPart.whole("classifier.bias", "classifier.bias", classes));
            return parts;
        }
        String head = "cls.predictions.";
        linear(parts, head + "transform.dense", "head.dense", d, 0, d);
        norm(parts, head + "transform.LayerNorm", "head.norm", d);
        parts.add(StoredPart.whole(head + "bias", "head.bias", shape.vocabulary()));
        return parts;
    }

    /** The pooler that comes with an encoder, from which a classifier starts. */
    @Override
    public List<StoredPart> spareParts(ModelShape shape) {
        List<StoredPart> parts = new ArrayList<>();
        if (!shape.classifies()) {
            linear(parts, PREFIX + "pooler.dense", "pooler", shape.width(), 0, shape.width());
        }
        return parts;
    }

    private static StoredPart table(String theirs, String ours, int rows, int columns) {
        return StoredPart.whole(theirs + ".weight", ours + ".weight", rows, columns);
    }

    private static void norm(List<StoredPart> parts, String theirs, String ours, int size) {
        parts.add(StoredPart.whole(theirs + ".weight", ours + ".weight", size));
        parts.add(StoredPart.whole(theirs + ".bias", ours + ".bias", size));
    }

    /**
     * @param first column of Penstock's matrix
     */
    private static void linear(
            List<StoredPart> parts, String theirs, String ours, int in, int first, int out) {
        parts.add(
                new StoredPart(
                        theirs + ".weight", ours + ".weight", List.of(out, in), first, true));
        parts.add(new StoredPart(theirs + ".bias", ours + ".bias", List.of(out), first, false));
    }

    @Override
    public String prefix() {
        return PREFIX;
    }

    @Override
    public boolean isOfHead(String bareName) {
        return HEADS.stream().anyMatch(bareName::startsWith);
    }

    /** What is computed from other tensors or repeats them. */
    @Override
    public boolean isConstant(String bareName) {
        return bareName.equals("embeddings.position_ids")
                || bareName.startsWith("cls.predictions.decoder.");
    }
}
