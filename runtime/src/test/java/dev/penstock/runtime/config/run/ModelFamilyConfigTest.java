package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.model.GoldenFamily;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.EncoderDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.RetentionDesign;
import dev.penstock.runtime.model.shape.RetentionDesign.Decay;
import dev.penstock.runtime.model.shape.StagePartition;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ModelFamilyConfigTest {
    @TempDir Path folder;

    @BeforeEach
    void someText() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be");
    }

    @Test
    void aFamilyHasWhatIsUsualInIt() throws IOException {
        ModelShape llama = shape("model { family = llama, width = 96, heads = 6, key-heads = 2 }");

        assertThat(llama.block().norm().epsilon()).isEqualTo(1e-5);
        assertThat(llama.block().heads().keys()).isEqualTo(2);
        assertThat(llama.block().heads().size()).isEqualTo(16);
        assertThat(llama.block().hidden()).isEqualTo(256);
        assertThat(llama.block().activation()).isEqualTo(BlockDesign.Activation.SWIGLU);
        assertThat(llama.positions())
                .isEqualTo(new Positions.Rotary(256, 10_000, Optional.empty()));
    }

    @Test
    void layersSeeInTurnWhatTheListSays() throws IOException {
        ModelShape gpt3 = shape("model { layers = 5, attention = [dense, local(16)] }");

        assertThat(gpt3.block().windows()).containsExactly(0, 16, 0, 16, 0);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "llama",
                "llama3",
                "mistral",
                "qwen2",
                "qwen3",
                "gpt2-variants",
                "gpt3",
                "retnet",
                "retnet-mixed",
                "bert-post-ln",
                "bert-pre-ln"
            })
    void aModelOfOthersIsTakenFromItsFolder(String name) throws IOException {
        var golden = new GoldenFamily(name);
        String text =
                "data.format = tokens, data.loss = %s, model.context = 16, model.from = \"%s\""
                        .formatted(name.startsWith("bert") ? "masked" : "all", golden.folder());

        RunConfig config = load(text);

        assertThat(config.model().shape(256)).isEqualTo(golden.shape());
        assertThat(config.model().config(256)).isEqualTo(golden.config());
        assertThat(config.model().config(256).toJson()).isEqualTo(golden.config().toJson());
        RunConfig again = load(config.resolved());
        assertThat(again).isEqualTo(config);
    }

    @Test
    void aRetNetsGateDecayAndValuesAreOptionsThatItsFolderKeeps() throws IOException {
        for (Decay decay : Decay.values()) {
            String word = decay.name().toLowerCase(Locale.ROOT);
            RunConfig config =
                    load(
                            "model { family = retnet, heads = 2, width = 32, gate = false, value-size = 24, decay = "
                                    + word
                                    + " }");

            ModelShape shape = config.model().shape(256);
            assertThat(shape.block().heads().retention())
                    .isEqualTo(new RetentionDesign(24, false, decay));
            ModelConfig folder = config.model().config(256);
            assertThat(ModelConfig.described(folder.family(), shape)).isEqualTo(shape);
        }
    }

    @Test
    void aListOfKindsSaysWhatEachLayerIs() throws IOException {
        RunConfig config =
                load(
                        "model { family = retnet, heads = 2, width = 32, layers = [\"2 x (retention, local(8))\", dense] }");

        ModelShape shape = config.model().shape(256);
        assertThat(shape.layers()).isEqualTo(5);
        assertThat(shape.block().windows()).containsExactly(-1, 8, -1, 8, 0);
        ModelConfig folder = config.model().config(256);
        assertThat(ModelConfig.described(folder.family(), shape)).isEqualTo(shape);
        assertThat(load(config.resolved())).isEqualTo(config);
        assertThat(ModelSection.kindsOfStages(shape, new StagePartition(List.of(3, 2))))
                .contains("stage 0: retention, local(8), retention; stage 1: local(8), dense");
        assertThat(shape("model.layers = [\"2 x (dense, local(8))\"]"))
                .isEqualTo(shape("model { layers = 4, attention = [dense, \"local(8)\"] }"));
    }

    /** So that its bits are those of the plain model: there is no other shape. */
    @Test
    void aListOfTheFamilysOwnKindIsTheSameAsTheirNumber() throws IOException {
        assertThat(shape("model.layers = [\"3 x dense\"]")).isEqualTo(shape("model.layers = 3"));
        assertThat(shape("model { family = retnet, layers = [\"3 x retention\"] }"))
                .isEqualTo(shape("model { family = retnet, layers = 3 }"));
        ModelShape shape = shape("model { family = retnet, layers = [\"3 x retention\"] }");
        assertThat(ModelSection.kindsOfStages(shape, new StagePartition(List.of(3)))).isEmpty();
    }

    @Test
    void layersThatAFamilyDoesNotHaveAreRefused() {
        assertThat(problems("model.layers = [retention, dense]"))
                .contains("model.layers: expected dense or local(N), as only layers of a retnet");
        assertThat(problems("model { family = llama, layers = [dense, dense, \"local(8)\"] }"))
                .contains("model.layers: expected [dense], as models of family llama have it");
        assertThat(problems("model.layers = [dense, wide]"))
                .contains("model.layers: expected an integer")
                .contains("3 x (local(128), dense)");
        assertThat(problems("model { layers = [dense, dense], attention = [\"local(8)\"] }"))
                .contains("model.attention: expected none, as model.layers says what layers see");
        String mixed = "model { family = retnet, layers = [retention, dense] }, ";
        assertThat(problems(mixed + "parallel.context = 2, data.packing = documents"))
                .contains("context parts do not know their borders");
        assertThat(problems(mixed + "fine-tune.method = lora"))
                .contains("an adapter has as many columns in every layer");
    }

    @Test
    void whatARetNetCannotDoIsRefusedWithTheReason() {
        assertThat(problems("model.family = retnet, device.kind = cuda"))
                .contains("GPUs do not have its kernels yet");
        assertThat(problems("model { family = retnet, attention = [\"local(8)\"] }"))
                .contains("a retention forgets by its decay");
        assertThat(problems("model { family = llama, decay = none }"))
                .contains(
                        "model.decay: expected none, as only heads of a retnet have them, got none");
    }

    @Test
    void aBertIsMegatronsOrTheOriginalAndHidesWords() throws IOException {
        String keys =
                " data.loss = masked, model { width = 32, heads = 2, context = 24, vocabulary = 257, family = ";

        ModelShape post = shape(keys + "bert }");
        ModelShape pre = shape(keys + "megatron-bert }");

        assertThat(post.block().encoder()).isEqualTo(new EncoderDesign(2, true));
        assertThat(pre.block().encoder()).isEqualTo(new EncoderDesign(2, false));
        assertThat(post.block().activation()).isEqualTo(BlockDesign.Activation.GELU);
        assertThat(post.block().hidden()).isEqualTo(128);
    }

    @Test
    void whatABertCannotDoIsRefusedWithTheReason() {
        String bert = "model { family = bert, vocabulary = 257 }, data.loss = masked, ";
        assertThat(
                        problems(
                                bert
                                        + "parallel.context = 2, schedule { kind = seq1f1b, slices = 2 }, device { kind = cuda, precision = bf16 }, data.packing = documents, model.dropout = 0.1, evaluation.tasks = [lambada-lm-eval]"))
                .contains("so sequences are not divided")
                .contains("so sequences are not cut")
                .contains("GPUs do not attend to both sides yet")
                .contains("are not rounded yet")
                .contains("does not end with a document yet")
                .contains("would stand behind what is dropped");
        assertThat(problems("model { family = bert, vocabulary = 257 }"))
                .contains("data.loss: expected masked")
                .contains("its tokens see the next one");
        assertThat(problems("data.loss = masked")).contains("it predicts the next token");
        assertThat(problems("model.family = bert, data.loss = masked"))
                .contains("try model.vocabulary = 257");
        assertThat(problems(bert + "data.mask-token = 257"))
                .contains("a token below model.vocabulary = 257");
        assertThat(problems(bert + "model.tied = false")).contains("model.tied: expected true");
    }

    /** Readers of the exported folder who train further begin with it; attention drops nothing. */
    @Test
    void dropoutIsSaidWhereTheFamilysFilesSayIt() throws IOException {
        RunConfig gpt2 = load("model.dropout = 0.125");
        RunConfig llama = load("model { family = llama, dropout = 0.125 }");

        assertThat(gpt2.model().dropout()).isEqualTo(0.125);
        assertThat(gpt2.model().config(256).toJson())
                .contains("\"embd_pdrop\" : 0.125")
                .contains("\"resid_pdrop\" : 0.125")
                .contains("\"attn_pdrop\" : 0.0");
        assertThat(gpt2.model().config(256)).isEqualTo(load("").model().config(256));
        assertThat(load("").model().config(256).toJson()).doesNotContain("pdrop");
        assertThat(llama.model().config(256).toJson())
                .isEqualTo(load("model.family = llama").model().config(256).toJson());
    }

    /** What others trained with is not what this run trains with. */
    @Test
    void theSettingDecidesWhateverTheFolderSays() throws IOException {
        Path file = folder.resolve("config.json");
        String said =
                load("").model()
                        .config(256)
                        .toJson()
                        .replaceFirst("\\{", "{ \"embd_pdrop\" : 0.1, \"resid_pdrop\" : 0.1,");
        Files.writeString(file, said);
        String from = "data.format = tokens, model.from = \"" + file + "\"";

        RunConfig silent = load(from);
        RunConfig loud = load(from + ", model.dropout = 0.25");

        assertThat(silent.model().dropout()).isZero();
        assertThat(silent.model().config(256).toJson()).contains("\"resid_pdrop\" : 0.1");
        assertThat(loud.model().dropout()).isEqualTo(0.25);
        assertThat(loud.model().config(256).toJson())
                .contains("\"resid_pdrop\" : 0.25")
                .doesNotContain(" 0.1");
    }

    @ParameterizedTest
    @ValueSource(strings = {"1", "-0.1", "NaN", "half"})
    void whatIsNoShareIsRefused(String dropout) {
        assertThat(problems("model.dropout = " + dropout))
                .contains("model.dropout")
                .contains("expected a number, at least 0 and below 1, got")
                .contains(dropout);
    }

    @Test
    void aMistralWhoseLayersDifferIsRefused() {
        assertThat(problems("model { family = mistral, attention = [dense, local(16)] }"))
                .contains("model.attention", "model.family");
    }

    /** So does a run that is told a number by the environment, or to forget one. */
    @ParameterizedTest
    @ValueSource(strings = {"width = null", "width = \"32\"", "width = 32.0", "epsilon = 0.00001"})
    void whatTheFolderSaysMayBeSaidAgainOrLeftOut(String key) throws IOException {
        var golden = new GoldenFamily("llama");

        RunConfig config =
                load(
                        "data.format = tokens, model { context = 16, from = \"%s\", %s }"
                                .formatted(golden.folder(), key));

        assertThat(config.model().shape(256)).isEqualTo(golden.shape());
    }

    @Test
    void aNameThatNothingGivesIsToldBesideAFolder() {
        String from = new GoldenFamily("llama").folder().toString();

        assertThat(
                        problems(
                                "data.format = tokens, model { from = \"%s\", width = ${NO_SUCH} }"
                                        .formatted(from)))
                .contains("${NO_SUCH}");
    }

    @Test
    void whatTheFolderSaysOtherwiseIsRefused() {
        String from = new GoldenFamily("llama").path("config.json").toString();

        assertThat(problems("data.format = tokens, model { from = \"" + from + "\", width = 64 }"))
                .contains("model.width")
                .contains("expected 32")
                .contains("got 64");
    }

    @Test
    void aFamilyThatNobodyKnowsIsToldWhichAreKnown() {
        assertThat(problems("model.family = lama"))
                .contains("model.family")
                .contains("one of gpt2, llama, mistral, qwen2, qwen3")
                .contains("try llama");
    }

    @Test
    void whatAFamilyDoesNotHaveIsRefusedByName() {
        assertThat(
                        problems(
                                "model { family = llama, attention = [local(8)], attention-by-layer"
                                        + " = true }"))
                .contains("model.attention:", "expected [dense]", "got [local(8)]")
                .contains("model.attention-by-layer:", "expected false");
        assertThat(problems("model { key-heads = 2, head-size = 32 }"))
                .contains("model.key-heads", "model.head-size");
        assertThat(problems("model.theta = 500000")).contains("do not turn heads");
        assertThat(problems("model { family = llama, activation = gelu }"))
                .contains("model.activation", "expected swiglu");
        assertThat(problems("model.attention = [sparse]")).contains("expected dense or local(N)");
        assertThat(problems("model { family = llama, stretch = [8, 1] }"))
                .contains("[factor, low, high, original context]");
        assertThat(problems("model { family = llama, context = 64, positions = 32 }"))
                .contains("at most model.positions = 32");
    }

    @Test
    void headsThatNoGpuAttendsWithAreRefusedBeforeTheFirstStep() throws IOException {
        String wide = "model { family = llama, width = 520, heads = 4 }, ";
        String said = "model { family = qwen3, width = 64, heads = 4, head-size = 256 }, ";

        assertThat(problems(wide + "device.kind = cuda"))
                .contains("model.heads", "heads of at most 128 columns where device.kind = cuda")
                .contains("got 130", "use more heads, or device.kind = cpu");
        assertThat(problems(said + "device.kind = \"cuda:0\""))
                .contains("model.head-size", "got 256");
        assertThat(load(wide + "device.kind = cpu").model().heads()).isEqualTo(4);
        assertThat(load("model { family = llama, width = 512, heads = 4 }, device.kind = cuda"))
                .isNotNull();
    }

    @Test
    void shardsTakeWholeGroupsOfHeads() {
        String llama = "model { family = llama, width = 96, heads = 6, key-heads = 3 }";

        assertThat(problems(llama + ", parallel.tensor = 2"))
                .contains("model.key-heads", "a multiple of parallel.tensor = 2", "got 3");
    }

    private ModelShape shape(String text) throws IOException {
        return load(text).model().shape(256);
    }

    private RunConfig load(String text) throws IOException {
        Path file = folder.resolve("run.conf");
        String data = text.contains("source =") ? "" : "data.source = corpus.txt\n";
        Files.writeString(file, data + text);
        return ConfigLoader.load(file, List.of());
    }

    private String problems(String text) {
        StringBuilder all = new StringBuilder();
        assertThatExceptionOfType(ConfigException.class)
                .isThrownBy(() -> load(text))
                .satisfies(e -> e.problems().forEach(problem -> all.append(problem).append('\n')));
        return all.toString();
    }
}
