package dev.penstock.runtime.cli.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.gguf.GgufFile;
import dev.penstock.runtime.gguf.GgufValue;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.vocabulary.Vocabulary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CheckpointExportCommandTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"model.tied=true", "model.tied=false"})
    void aRunThatStartsFromTheExportHasTheLossOfTheRunThatWasExported(String tied) {
        Trained trained =
                Training.onText(folder.resolve("trained")).set("run.steps=5", tied).complete();
        Path weights = folder.resolve("gpt/model.safetensors");

        Cli export = export(trained.directory(), weights);
        Trained started =
                Training.onText(folder.resolve("started"))
                        .set("run.steps=1", "pipeline.stages=1", tied)
                        .init(weights)
                        .complete();

        assertThat(export.exitCode()).as(export.err()).isEqualTo(ExitCode.OK);
        assertThat(export.out()).contains("step 5", "model.safetensors", "config.json");
        assertThat(lossOf(started.validationBits().getFirst()))
                .isEqualTo(lossOf(trained.validationBits().getLast()));
    }

    @Test
    void theFileHoldsTheParametersAloneAndItsConfigTheShape() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path weights = folder.resolve("tiny.safetensors");

        JsonNode answer = JSON.readTree(export(checkpoint, weights, "--json").out());

        assertThat(answer.get("step").asLong()).isEqualTo(100);
        assertThat(answer.get("bytes").asLong()).isEqualTo(Files.size(weights));
        assertThat(ModelConfig.read(Path.of(answer.get("config").asText())))
                .isEqualTo(SavedRun.MODEL);
        try (SafetensorsFile file = SafetensorsFile.open(weights)) {
            assertThat(file.tensors())
                    .extracting(StoredTensor::name)
                    .containsExactlyInAnyOrderElementsOf(SavedRun.MODEL.parameters().keySet());
        }
    }

    @Test
    void aModelThatIsThereIsReplacedOnlyWhenAsked() throws IOException {
        Path run = folder.resolve("run");
        SavedRun.write(run, 100);
        Path config = Files.writeString(folder.resolve("config.json"), "of another model");
        Path weights = folder.resolve("model.safetensors");

        Cli refused = export(run, weights);
        String kept = Files.readString(config);
        Cli forced = export(run, weights, "--force");

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("config.json", "--force");
        assertThat(kept).isEqualTo("of another model");
        assertThat(forced.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(ModelConfig.read(config)).isEqualTo(SavedRun.MODEL);
    }

    @Test
    void aFolderIsNoOutputAndARunWithoutCheckpointsNoInput() {
        Cli noName = export(SavedRun.write(folder.resolve("run"), 100), folder.resolve("gpt"));
        Cli nothing = export(folder.resolve("nowhere"), folder.resolve("gpt.safetensors"));

        assertThat(noName.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(noName.err()).contains("ends with .safetensors", "gpt/model.safetensors");
        assertThat(nothing.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(nothing.err()).contains("nowhere: no checkpoint here");
        assertThat(folder.resolve("gpt.safetensors")).doesNotExist();
    }

    @Test
    void optionsAndWeightsAreToldTogether() {
        Cli cli =
                Cli.run(
                        "checkpoint",
                        "export",
                        folder.resolve("nowhere").toString(),
                        "--output=weights.bin",
                        "--type=q8_0",
                        "--part-size=2",
                        "--tokenizer=gpt3");

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err())
                .contains("5 problems", "--output", "--type", "--part-size", "--tokenizer")
                .contains("CHECKPOINT: " + folder.resolve("nowhere"));
    }

    @Test
    void weightsInPartsAreTheSameModel() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path whole = folder.resolve("whole/model.safetensors");
        Path parts = folder.resolve("parts/model.safetensors");
        export(checkpoint, whole);

        Cli cli = export(checkpoint, parts, "--part-size", "1.5KB");
        Cli joined =
                Cli.run(
                        "checkpoint",
                        "convert",
                        DurableFiles.folderOf(parts).toString(),
                        folder.resolve("joined").toString(),
                        "--format",
                        "huggingface");

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        assertThat(cli.out()).contains("model-00001-of-00004.safetensors", "in 4 files");
        assertThat(DurableFiles.folderOf(parts).toFile().list())
                .containsExactlyInAnyOrder(
                        "config.json",
                        "tokenizer.json",
                        "tokenizer_config.json",
                        "model.safetensors.index.json",
                        "model-00001-of-00004.safetensors",
                        "model-00002-of-00004.safetensors",
                        "model-00003-of-00004.safetensors",
                        "model-00004-of-00004.safetensors");
        assertThat(joined.exitCode()).as(joined.err()).isEqualTo(ExitCode.OK);
        assertThat(folder.resolve("joined/model.safetensors")).hasSameBinaryContentAs(whole);
    }

    @Test
    void anotherNumberOfPartsLeavesNothingOfTheLast() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path weights = folder.resolve("gpt/model.safetensors");
        export(checkpoint, weights, "--part-size", "1KB");

        Cli refused = export(checkpoint, weights);
        Cli forced = export(checkpoint, weights, "--force");
        List<String> one = List.of(DurableFiles.folderOf(weights).toFile().list());
        export(checkpoint, weights, "--force", "--part-size", "1.5KB");

        assertThat(refused.err()).contains("config.json", "index.json", "--force");
        assertThat(forced.exitCode()).as(forced.err()).isEqualTo(ExitCode.OK);
        assertThat(one)
                .containsExactlyInAnyOrder(
                        "config.json",
                        "tokenizer.json",
                        "tokenizer_config.json",
                        "model.safetensors");
        assertThat(DurableFiles.folderOf(weights).toFile().list())
                .hasSize(8)
                .doesNotContain("model.safetensors");
    }

    @Test
    void narrowTypesAreRoundedAndSayWhatTheyAre() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path exact = folder.resolve("f32/model.safetensors");
        Path half = folder.resolve("bf16/model.safetensors");
        export(checkpoint, exact, "--type", "f32");

        Cli cli = export(checkpoint, half, "--type", "bf16");
        Cli again =
                Cli.run(
                        "checkpoint",
                        "export",
                        DurableFiles.folderOf(half).toString(),
                        "--output",
                        folder.resolve("again/model.safetensors").toString());

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        assertThat(Files.readString(half.resolveSibling("config.json")))
                .contains("\"torch_dtype\" : \"bfloat16\"");
        assertThat(folder.resolve("again/model.safetensors")).hasSameBinaryContentAs(half);
        assertThat(again.exitCode()).as(again.err()).isEqualTo(ExitCode.OK);
        try (SafetensorsFile wide = SafetensorsFile.open(exact);
                SafetensorsFile narrow = SafetensorsFile.open(half)) {
            for (StoredTensor tensor : wide.tensors()) {
                StoredTensor rounded = narrow.tensor(tensor.name());
                assertThat(rounded.type()).isEqualTo(StoredType.BF16);
                for (int i = 0; i < tensor.elements(); i++) {
                    double value = tensor.real(i);
                    assertThat(rounded.real(i))
                            .isCloseTo(value, Offset.offset(Math.abs(value) / 256));
                }
            }
        }
    }

    /** Other inference engines read it; the bytes are looked at in GgufModelTest. */
    @Test
    void aNameThatEndsWithGgufIsWrittenAsGguf() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path file = folder.resolve("out/gpt.gguf");

        Cli cli = export(checkpoint, file, "--type", "q8_0");
        Cli again = export(checkpoint, file);
        Cli parts = export(checkpoint, file, "--force", "--part-size", "1GB");
        Cli blocks = export(checkpoint, folder.resolve("x.safetensors"), "--type", "q8_0");
        Cli unknown = export(checkpoint, file, "--force", "--tokenizer", "morse");

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        assertThat(DurableFiles.folderOf(file).toFile().list()).containsExactly("gpt.gguf");
        GgufFile gguf = GgufFile.read(file);
        assertThat(gguf.tensors()).hasSize(SavedRun.MODEL.parameters().size());
        assertThat(gguf.metadata())
                .containsEntry("general.architecture", new GgufValue.Text("gpt2"))
                .containsEntry("tokenizer.ggml.tokens", new GgufValue.Skipped("STRING", 256));
        assertThat(again.err()).contains("gpt.gguf", "--force");
        assertThat(parts.err()).contains("--part-size: a GGUF file is one");
        assertThat(blocks.err()).contains("--type: expected f32, bf16 or f16");
        assertThat(unknown.err()).contains("--tokenizer: expected bytes, gpt2, or a folder");
        for (Cli each : List.of(again, parts, blocks, unknown)) {
            assertThat(each.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(each.err().lines()).hasSize(1);
        }
    }

    @Test
    void theTokenizerGoesWithTheWeights() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path weights = folder.resolve("gpt/model.safetensors");
        Path copied = folder.resolve("copied/model.safetensors");
        export(checkpoint, weights);

        Cli cli = export(DurableFiles.folderOf(weights), copied);
        Cli gguf = export(DurableFiles.folderOf(weights), folder.resolve("gpt.gguf"));

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        assertThat(Files.readString(copied.resolveSibling("config.json")))
                .contains("\"bos_token_id\" : null", "\"eos_token_id\" : null");
        for (String name : List.of("tokenizer.json", "tokenizer_config.json")) {
            assertThat(copied.resolveSibling(name))
                    .hasSameBinaryContentAs(weights.resolveSibling(name));
        }
        assertThat(gguf.exitCode()).as(gguf.err()).isEqualTo(ExitCode.OK);
        Tokenizer bytes = Tokenizer.named("bytes");
        Tokenizer again = Tokenizer.open(DurableFiles.folderOf(weights).toString());
        assertThat(again.encode("Größe\n")).isEqualTo(bytes.encode("Größe\n"));
        assertThat(again.endOfText()).isEqualTo(bytes.endOfText());
        assertThat(again.documentSeparator()).isEqualTo(bytes.documentSeparator());
        assertThat(Vocabulary.in(DurableFiles.folderOf(weights)).orElseThrow())
                .isEqualTo(Vocabulary.of(Tokenizer.named("bytes")));
    }

    /** Such as a download that is not finished, or a tokenizer of somebody's own. */
    @ParameterizedTest
    @ValueSource(strings = {"model-00001-of-00003.safetensors", "tokenizer.json"})
    void filesBesideTheWeightsAreReplacedByForceAlone(String name) throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path weights = folder.resolve("gpt/model.safetensors");
        Path precious = weights.resolveSibling(name);
        Files.createDirectories(DurableFiles.folderOf(weights));
        Files.writeString(precious, "precious");

        Cli export = export(checkpoint, weights);
        Cli convert =
                Cli.run(
                        "checkpoint",
                        "convert",
                        checkpoint.toString(),
                        DurableFiles.folderOf(weights).toString(),
                        "--format=huggingface");

        for (Cli refused : List.of(export, convert)) {
            assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(refused.err()).contains(precious.toString());
        }
        assertThat(precious).hasContent("precious");
        assertThat(weights).doesNotExist();
        Cli forced = export(checkpoint, weights, "--force");
        assertThat(forced.exitCode()).as(forced.err()).isEqualTo(ExitCode.OK);
    }

    /** The 256 bytes would go into every larger vocabulary; a guess would be silently wrong. */
    @ParameterizedTest
    @ValueSource(strings = {"gpt/model.safetensors", "gpt.gguf"})
    void aTokenizerIsNotGuessedForAVocabularyThatIsNotItsOwn(String output) {
        Path checkpoint =
                SavedRun.write(
                        folder.resolve("run"), 100, ModelConfig.gpt2(600, 16, 8, 1, 2, true));
        Path weights = folder.resolve(output);

        Cli refused = export(checkpoint, weights);
        Cli named = export(checkpoint, weights, "--tokenizer=bytes");

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("--tokenizer: expected the tokenizer of a vocabulary of 600")
                .contains("got none; give the folder of its files");
        assertThat(refused.err().lines()).hasSize(1);
        assertThat(named.exitCode()).as(named.err()).isEqualTo(ExitCode.OK);
    }

    @Test
    void weightsAloneAreWrittenWhenAsked() throws IOException {
        Path checkpoint =
                SavedRun.write(
                        folder.resolve("run"), 100, ModelConfig.gpt2(600, 16, 8, 1, 2, true));
        Path weights = folder.resolve("gpt/model.safetensors");

        Cli cli = export(checkpoint, weights, "--tokenizer=none");
        Cli gguf = export(checkpoint, folder.resolve("gpt.gguf"), "--tokenizer=none");

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        assertThat(DurableFiles.folderOf(weights).toFile().list())
                .containsExactlyInAnyOrder("config.json", "model.safetensors");
        assertThat(gguf.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(gguf.err()).contains("--tokenizer: a GGUF file has one");
    }

    @Test
    void aTokenizerWithMoreTokensThanTheModelIsRefused() throws IOException {
        Path checkpoint = SavedRun.write(folder.resolve("run"), 100);
        Path words = words(300);
        Path weights = folder.resolve("gpt/model.safetensors");

        Cli cli = export(checkpoint, weights, "--tokenizer", words.toString());
        Cli name = export(checkpoint, weights, "--tokenizer", "gpt2");

        assertThat(cli.err())
                .contains("--tokenizer: expected one of at most 256 tokens", "got 300 of " + words);
        assertThat(name.err()).contains("got 50,257 of gpt2");
        for (Cli each : List.of(cli, name)) {
            assertThat(each.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(each.err().lines()).hasSize(1);
        }
        assertThat(DurableFiles.folderOf(weights)).doesNotExist();
    }

    @Test
    void aNanThatBlocksCannotHoldIsToldWithItsTensor() {
        Path checkpoint =
                SavedRun.writeWithNan(folder.resolve("run"), 100, "h.0.mlp.c_proj.weight");
        Path file = folder.resolve("gpt.gguf");

        Cli cli = export(checkpoint, file, "--type", "q8_0");

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err())
                .contains("gpt.gguf: blk.0.ffn_down.weight: has a value that is NaN")
                .doesNotContain("incomplete");
        assertThat(file).doesNotExist();
    }

    private Path words(int vocabulary) throws IOException {
        Path text = Files.writeString(folder.resolve("t.txt"), Training.text(9_000));
        Path words = folder.resolve("words");
        Cli cli =
                Cli.run(
                        "tokenizer",
                        "train",
                        "--vocabulary=" + vocabulary,
                        "--output=" + words,
                        text.toString());
        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        return words;
    }

    @Test
    void aSizeWithoutUnitIsNone() {
        Cli cli =
                export(
                        SavedRun.write(folder.resolve("run"), 100),
                        folder.resolve("model.safetensors"),
                        "--part-size",
                        "2");

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err()).contains("--part-size: expected a size such as 500MB or 2GiB, got 2");
        assertThat(folder.resolve("model.safetensors")).doesNotExist();
    }

    private static Cli export(Path from, Path to, String... more) {
        String[] arguments = new String[5 + more.length];
        String[] first = {"checkpoint", "export", from.toString(), "--output", to.toString()};
        System.arraycopy(first, 0, arguments, 0, first.length);
        System.arraycopy(more, 0, arguments, first.length, more.length);
        return Cli.run(arguments);
    }

    /** Without the step that it was measured after. */
    private static String lossOf(String bits) {
        return bits.substring(bits.indexOf(' '));
    }
}
