package dev.penstock.runtime.cli.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
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
import dev.penstock.runtime.safetensors.TensorFacts;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckpointConvertCommandTest {
    @TempDir Path folder;

    @Test
    void anotherLayoutHoldsTheSameBits() {
        Path run = folder.resolve("run");
        SavedRun.write(run, 100);

        Cli two = convert("run", "two", "--partition", "1,0");
        Cli one = convert("two", "one", "--whole");

        assertThat(two.out()).contains("step-000100", "2 files", "read back: equal");
        assertThat(one.out()).contains("stage-0.safetensors");
        assertSameState(run, folder.resolve("two"));
        assertSameState(run, folder.resolve("one"));
        assertThat(checkpoint(folder.resolve("two")).manifest().seed()).isEqualTo(42);
        assertThat(Cli.run("checkpoint", "inspect", folder.resolve("two").toString()).out())
                .contains("stage-0.safetensors, 42 tensors", "stage-1.safetensors, 6 tensors");
    }

    @Test
    void huggingFaceAndBackIsTheSameBits() throws IOException {
        SavedRun.write(folder.resolve("run"), 100);

        convert("run", "gpt", "--format", "huggingface");
        convert("gpt", "back", "--stages", "1");
        convert("back", "again", "--format", "huggingface");

        assertThat(folder.resolve("again/model.safetensors"))
                .hasSameBinaryContentAs(folder.resolve("gpt/model.safetensors"));
        assertThat(folder.resolve("again/config.json"))
                .hasSameBinaryContentAs(folder.resolve("gpt/config.json"));
        SavedCheckpoint back = checkpoint(folder.resolve("back"));
        assertThat(back.step()).isZero();
        try (CheckpointReader reader = back.read();
                Arena arena = Arena.ofConfined()) {
            assertThat(reader.read("optimizer.v.wpe.weight", arena).orElseThrow().toFloats())
                    .containsOnly(0);
        }
    }

    /** Also when the weights' folder is gone, and through several conversions. */
    @Test
    void theTokenizerBesideTheWeightsStaysWithTheRun() throws IOException {
        Path words = words();
        SavedRun.write(folder.resolve("run"), 100, ModelConfig.gpt2(300, 16, 8, 1, 2, true));
        convert("run", "gpt", "--format", "huggingface", "--tokenizer", words.toString());
        convert("gpt", "one", "--stages", "1");
        Files.move(folder.resolve("gpt"), folder.resolve("elsewhere"));
        Files.move(words, folder.resolve("other words"));
        convert("one", "two", "--stages", "2");
        Files.move(folder.resolve("two"), folder.resolve("moved"));

        convert("moved", "again", "--format", "huggingface");
        Cli gguf = Cli.run("checkpoint", "export", in("moved"), "--output=" + in("moved.gguf"));

        for (String name : List.of("tokenizer.json", "tokenizer_config.json")) {
            assertThat(folder.resolve("again").resolve(name))
                    .hasSameBinaryContentAs(folder.resolve("one/tokenizer").resolve(name));
        }
        assertThat(Tokenizer.vocabularyOf(in("again"))).isEqualTo(300);
        assertThat(gguf.exitCode()).as(gguf.err()).isEqualTo(ExitCode.OK);
        assertThat(GgufFile.read(folder.resolve("moved.gguf")).metadata())
                .containsEntry("tokenizer.ggml.merges", new GgufValue.Skipped("STRING", 43));
    }

    @Test
    void anotherTokenizerThatIsThereStopsAConversionAndAFailedOneLeavesNone() throws IOException {
        Path words = words();
        SavedRun.write(folder.resolve("run"), 100, ModelConfig.gpt2(300, 16, 8, 1, 2, true));
        convert("run", "gpt", "--format", "huggingface", "--tokenizer", words.toString());
        Path theirs = folder.resolve("to/tokenizer/tokenizer.json");
        Files.createDirectories(folder.resolve("to/tokenizer"));
        Files.writeString(theirs, "of another");
        Files.createDirectories(folder.resolve("full"));
        Files.writeString(folder.resolve("full/checkpoints"), "in the way");

        Cli other = Cli.run("checkpoint", "convert", in("gpt"), in("to"), "--whole");
        Cli failed = Cli.run("checkpoint", "convert", in("gpt"), in("full"), "--whole");

        assertThat(other.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(other.err()).contains("without another tokenizer, got " + theirs);
        assertThat(theirs).hasContent("of another");
        assertThat(folder.resolve("to/checkpoints")).doesNotExist();
        assertThat(failed.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(folder.resolve("full/tokenizer")).doesNotExist();
    }

    private Path words() throws IOException {
        Path text = Files.writeString(folder.resolve("t.txt"), Training.text(9_000));
        Path words = folder.resolve("words");
        Cli cli =
                Cli.run(
                        "tokenizer",
                        "train",
                        "--vocabulary=300",
                        "--output=" + words,
                        text.toString());
        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        return words;
    }

    @Test
    void nothingIsReplaced() {
        SavedRun.write(folder.resolve("run"), 100);
        convert("run", "one", "--whole");
        convert("run", "gpt", "--format", "huggingface");

        Cli again = Cli.run("checkpoint", "convert", in("run"), in("one"), "--stages", "1");
        Cli weights =
                Cli.run("checkpoint", "convert", in("run"), in("gpt"), "--format", "huggingface");

        assertThat(again.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(again.err()).contains("step-000100", "this checkpoint exists already");
        assertThat(weights.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(weights.err()).contains("config.json", "try another");
    }

    @Test
    void whatCannotBeSaysWhy() throws IOException {
        SavedRun.write(folder.resolve("run"), 100);
        Files.writeString(folder.resolve("text"), "no model");

        Cli layers = Cli.run("checkpoint", "convert", in("run"), in("x"), "--partition", "1,1");
        Cli text = Cli.run("checkpoint", "convert", in("text"), in("x"), "--whole");
        Cli nothing = Cli.run("checkpoint", "convert", in("nothing"), in("x"), "--whole");
        Cli file = Cli.run("checkpoint", "convert", in("run"), in("text"), "--whole");

        assertThat(layers.err()).contains("--partition");
        assertThat(text.err()).contains("not a safetensors file");
        assertThat(nothing.err()).contains("no checkpoint here");
        assertThat(file.err()).contains("create the folder");
        for (Cli each : new Cli[] {layers, text, nothing, file}) {
            assertThat(each.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(each.err().lines()).hasSize(1);
        }
        assertThat(folder.resolve("x")).doesNotExist();
    }

    /** Both ways into training: with the optimizer's state, and with the weights alone. */
    @Test
    void aConvertedRunGoesOn() throws IOException {
        Trained whole = Training.onText(folder.resolve("whole")).complete();
        Path converted = folder.resolve("moved/run");
        Path saved = whole.directory().resolve("checkpoints/step-000008");
        convert(saved.toString(), converted.toString(), "--whole");

        Trained resumed = Training.onText(folder.resolve("moved")).resume().complete();
        Trained begun =
                Training.onText(folder.resolve("begun")).init(saved).set("run.steps=1").complete();

        assertThat(resumed.lossBits()).isEqualTo(whole.lossBits().subList(8, 12));
        assertThat(begun.lossBits()).hasSize(1);
        assertThat(begun.lossBits().getFirst()).isNotEqualTo(whole.lossBits().getFirst());
    }

    /** Its optimizer starts afresh, so that it learns what a run of the same weights learns. */
    @Test
    void weightsThatBecameACheckpointGoOnAsThoseTheyWere() throws IOException {
        Trained first = Training.onText(folder.resolve("first")).set("run.steps=1").complete();
        convert(first.directory().toString(), "gpt", "--format", "huggingface");
        convert("gpt", "moved/run", "--whole");

        Trained resumed =
                Training.onText(folder.resolve("moved")).set("run.steps=3").resume().complete();
        Trained begun =
                Training.onText(folder.resolve("begun"))
                        .init(folder.resolve("gpt"))
                        .set("run.steps=3")
                        .complete();

        assertThat(resumed.lossBits()).isEqualTo(begun.lossBits());
        Path file = folder.resolve("moved/run/checkpoints/step-000000/stage-0.safetensors");
        try (SafetensorsFile imported = SafetensorsFile.open(file)) {
            assertThat(imported.tensors())
                    .extracting(StoredTensor::name)
                    .noneMatch(name -> name.startsWith("optimizer."));
        }
    }

    private Cli convert(String from, String to, String... form) {
        String[] arguments = new String[4 + form.length];
        arguments[0] = "checkpoint";
        arguments[1] = "convert";
        arguments[2] = in(from);
        arguments[3] = in(to);
        System.arraycopy(form, 0, arguments, 4, form.length);
        Cli cli = Cli.run(arguments);
        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        return cli;
    }

    private String in(String name) {
        return folder.resolve(name).toString();
    }

    private static SavedCheckpoint checkpoint(Path run) {
        return CheckpointFolders.find(run, _ -> {});
    }

    private static void assertSameState(Path run, Path other) {
        try (CheckpointReader one = checkpoint(run).read();
                CheckpointReader two = checkpoint(other).read();
                Arena arena = Arena.ofConfined()) {
            assertThat(two.tensors()).hasSameSizeAs(one.tensors());
            for (TensorFacts each : one.tensors()) {
                var before = one.read(each.name(), arena).orElseThrow();
                var after = two.read(each.name(), arena).orElseThrow();
                assertThat(after.data().mismatch(before.data())).as(each.name()).isEqualTo(-1);
            }
        }
    }
}
