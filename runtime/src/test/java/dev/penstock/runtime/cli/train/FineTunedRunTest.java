package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.checkpoint.PeftAdapter;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.model.GoldenAdapter;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.TensorFacts;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Runs that train adapters, or leave parameters as they are, from the command line. */
class FineTunedRunTest {
    private static final double[] GOLDEN = {
        4.296310018203917, 4.222927871349783, 4.220097276004864, 4.202953131360311
    };

    private final GoldenAdapter golden = new GoldenAdapter();

    @TempDir private Path folder;

    private Training lora(String name) throws IOException {
        Path own = Files.createDirectories(folder.resolve(name));
        Training training = Training.golden(own, true).init(golden.base().folder());
        Path file = training.configuration();
        String text = Files.readString(file);
        Files.writeString(
                file,
                text.replaceFirst("(?s)model \\{.*?\\}", "model { context = 16 }")
                        .replaceFirst(
                                "source = \"[^\"]*\"",
                                "source = \""
                                        + golden.folder().resolve("tokens.safetensors")
                                        + "\""));
        return training.set("model.from=" + golden.base().folder())
                .set("run.steps=4", "checkpoint.every=2", "optimizer.weight-decay=0")
                .set("fine-tune.method=lora", "fine-tune.rank=4", "fine-tune.alpha=8")
                .set("fine-tune.adapter=" + golden.folder());
    }

    @Test
    void anAdapterFollowsTheGoldenRunInStagesSlicesAndResumed() throws IOException {
        Trained whole = lora("whole").complete();
        Trained staged = lora("staged").set("pipeline.stages=2").complete();
        Training resumed = lora("resumed");
        resumed.copy().set("run.steps=2").complete();
        Trained ended = resumed.copy().resume().complete();

        for (int i = 0; i < GOLDEN.length; i++) {
            assertThat(whole.losses().get(i)).isCloseTo(GOLDEN[i], within(2e-4));
        }
        assertThat(staged.lossBits()).isEqualTo(whole.lossBits());
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
    }

    /** Merged is what was trained: the floats that the integers stand for, and the adapter. */
    @Test
    void anAdapterBesideIntegersIsMergedOntoWhatTheyStandFor() throws IOException {
        Training training = lora("run").set("fine-tune.frozen=int8");
        Trained trained = training.complete();
        Path merged = folder.resolve("merged");
        Cli model =
                Cli.run(
                        "checkpoint",
                        "export",
                        training.directory().toString(),
                        "--tokenizer=none",
                        "--output",
                        merged.resolve("model.safetensors").toString());
        assertThat(model.exitCode()).as(model.err()).isEqualTo(ExitCode.OK);
        Path exported = folder.resolve("adapter").resolve(PeftAdapter.WEIGHTS);
        Cli adapter =
                Cli.run(
                        "checkpoint",
                        "export",
                        training.directory().toString(),
                        "--adapter",
                        "--output",
                        exported.toString());
        assertThat(adapter.exitCode()).as(adapter.err()).isEqualTo(ExitCode.OK);
        Trained again =
                lora("again")
                        .set("fine-tune.frozen=int8", "fine-tune.adapter=" + exported.getParent())
                        .complete();
        Trained full =
                lora("full")
                        .init(merged)
                        .set("fine-tune.method=full", "fine-tune.adapter=none")
                        .complete();

        for (int i = 0; i < GOLDEN.length; i++) {
            assertThat(trained.losses().get(i)).isCloseTo(GOLDEN[i], within(1e-2));
        }
        assertThat(Math.abs(trained.losses().getFirst() - GOLDEN[0])).isGreaterThan(1e-4);
        // the batches of step 1 once more, where the adapter is a part of the weights
        assertThat(full.losses().getFirst()).isLessThan(GOLDEN[0]);
        assertThat(again.losses().getFirst()).isCloseTo(full.losses().getFirst(), within(1e-5));
    }

    @Test
    void dropoutIsTheSameInStagesAndSlicesAndResumed() throws IOException {
        String drop = "fine-tune.dropout=0.2";
        Training training = lora("whole").set(drop);
        Trained whole = training.complete();
        Trained staged = lora("staged").set(drop, "pipeline.stages=2").complete();
        Training resumed = lora("resumed").set(drop);
        resumed.copy().set("run.steps=2").complete();
        Trained ended = resumed.copy().resume().complete();
        assertThat(ended.lossBits()).isEqualTo(whole.lossBits());
        Trained without = resumed.copy().resume().set("fine-tune.dropout=0", "run.steps=5").run();
        Path exported = folder.resolve("adapter").resolve(PeftAdapter.WEIGHTS);
        Cli adapter =
                Cli.run(
                        "checkpoint",
                        "export",
                        training.directory().toString(),
                        "--adapter",
                        "--output",
                        exported.toString());

        assertThat(Math.abs(whole.losses().getFirst() - GOLDEN[0])).isGreaterThan(1e-3);
        assertThat(staged.lossBits()).isEqualTo(whole.lossBits());
        assertThat(without.exitCode()).as(without.err()).isEqualTo(ExitCode.OK);
        assertThat(adapter.exitCode()).as(adapter.err()).isEqualTo(ExitCode.OK);
        assertThat(exported.resolveSibling(PeftAdapter.CONFIG))
                .content()
                .contains("\"lora_dropout\" : 0.2");
    }

    @Test
    void anAdapterIsSavedExportedAndMerged() throws IOException {
        Training training = lora("run");
        training.complete();
        String run = training.directory().toString();
        Path exported = folder.resolve("adapter").resolve(PeftAdapter.WEIGHTS);
        Path merged = folder.resolve("merged");

        Cli adapter =
                Cli.run("checkpoint", "export", run, "--adapter", "--output", exported.toString());
        Cli model =
                Cli.run(
                        "checkpoint",
                        "export",
                        run,
                        "--tokenizer=none",
                        "--output",
                        merged.resolve("model.safetensors").toString());
        Cli verified = Cli.run("checkpoint", "verify", run);
        assertThat(adapter.exitCode()).as(adapter.err()).isEqualTo(ExitCode.OK);
        assertThat(model.exitCode()).as(model.err()).isEqualTo(ExitCode.OK);
        assertThat(verified.exitCode()).as(verified.err()).isEqualTo(ExitCode.OK);
        Trained further =
                lora("further").set("fine-tune.adapter=" + exported.getParent()).complete();
        Trained full =
                lora("full")
                        .init(merged)
                        .set("fine-tune.method=full", "fine-tune.adapter=none")
                        .complete();

        assertThat(exported.resolveSibling("adapter_config.json")).exists();
        assertThat(further.losses().getFirst()).isCloseTo(full.losses().getFirst(), within(1e-5));
        assertThat(further.losses().getFirst()).isLessThan(GOLDEN[0]);
        Path step = training.directory().resolve("checkpoints").resolve("step-000004");
        try (var reader = SavedCheckpoint.open(step).read();
                Arena arena = Arena.ofConfined()) {
            assertThat(reader.tensors())
                    .extracting(TensorFacts::name)
                    .contains("optimizer.m.h.0.attn.c_attn.q_proj.lora_A.weight")
                    .doesNotContain("optimizer.m.h.0.attn.c_attn.weight");
            try (SafetensorsFile base =
                    SafetensorsFile.open(golden.base().path("model.safetensors"))) {
                StoredTensor norm = reader.read("ln_f.weight", arena).orElseThrow();
                assertThat(norm.toFloats()).isEqualTo(base.tensor("model.norm.weight").toFloats());
            }
        }
    }

    /** Pieces of several ranks, frozen ones too, make up whole tensors. */
    @ParameterizedTest
    @CsvSource({"1, 1, 2", "2, 2, 2", "3, 1, 2"})
    void aRunGoesOnInAnotherLayout(int zero, int tensor, int data) throws IOException {
        Training training =
                lora("run")
                        .set("run.steps=2", "parallel.data=" + data, "parallel.tensor=" + tensor)
                        .set("parallel.zero.stage=" + zero);
        training.complete();

        Cli verified = Cli.run("checkpoint", "verify", training.directory().toString());
        Trained ended =
                training.copy()
                        .resume()
                        .set("run.steps=4", "parallel.data=1", "parallel.tensor=1")
                        .set("parallel.zero.stage=0")
                        .complete();

        assertThat(verified.exitCode()).as(verified.err()).isEqualTo(ExitCode.OK);
        for (int i = 0; i < GOLDEN.length; i++) {
            assertThat(ended.losses().get(i)).isCloseTo(GOLDEN[i], within(2e-4));
        }
    }

    @Test
    void aRunOfOtherAdaptersDoesNotGoOn() throws IOException {
        Training training = lora("run");
        training.complete();

        Trained other = training.copy().resume().set("fine-tune.rank=2", "run.steps=6").run();
        Trained full =
                training.copy()
                        .resume()
                        .set("run.steps=6")
                        .set("fine-tune.method=full", "fine-tune.adapter=none")
                        .run();

        assertThat(other.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(other.err()).contains("lora of rank 4, alpha 8.0, on q_proj, v_proj");
        assertThat(full.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(full.err()).contains("the run has none");
    }

    @Test
    void aRunAndItsCheckpointSayWhatIsTrained() throws IOException {
        Training training = lora("run").set("run.steps=2");
        Trained trained = training.complete();
        Cli inspected = Cli.run("checkpoint", "inspect", training.directory().toString());

        long own = golden.base().shape().parameters();
        long adapter = adapterElements();
        String words = "lora of rank 4, alpha 8.0, on q_proj, v_proj";
        String line =
                "fine-tuning: %s; begun with the adapter %s: %,d of %,d parameters are trained"
                        .formatted(words, golden.folder(), adapter, own + adapter);
        assertThat(trained.out()).contains(line);
        assertThat(training.directory().resolve("events.jsonl")).content().contains(words);
        assertThat(inspected.out())
                .contains("model       llama of %,d parameters: ".formatted(own))
                .contains("adapter     %s: %,d parameters".formatted(words, adapter))
                .contains(
                        "trained     %s: %,d of %,d parameters are trained"
                                .formatted(words, adapter, own + adapter));
    }

    private long adapterElements() {
        try (SafetensorsFile file =
                SafetensorsFile.open(golden.folder().resolve(PeftAdapter.WEIGHTS))) {
            return file.tensors().stream().mapToLong(TensorFacts::elements).sum();
        }
    }

    @Test
    void anAdapterThatDoesNotFitIsToldWithItsKeyBesideOtherMistakes() throws IOException {
        Trained refused =
                lora("refused")
                        .set("fine-tune.rank=3", "fine-tune.freeze=[nothing]", "model.width=33")
                        .run();
        Trained alone = lora("alone").set("fine-tune.rank=3").run();
        Trained gone = lora("gone").set("fine-tune.adapter=" + golden.base().folder()).run();

        for (Trained each : List.of(refused, alone)) {
            assertThat(each.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(each.err())
                    .contains("fine-tune.adapter: expected a folder of PEFT")
                    .contains(golden.folder().toString())
                    .contains("r: the adapter has 4, the run has fine-tune.rank = 3")
                    .doesNotContain("--init", "\tat ");
        }
        assertThat(refused.err()).contains("fine-tune.freeze", "model.width");
        assertThat(gone.err())
                .contains("fine-tune.adapter: expected a folder of PEFT")
                .contains("adapter_config.json")
                .doesNotContain("--init");
    }

    @Test
    void anAdapterNeedsLora() throws IOException {
        Trained refused = lora("refused").set("fine-tune.method=full").run();
        Cli checked =
                Cli.run(
                        "config",
                        "check",
                        lora("checked").configuration().toString(),
                        "--set=fine-tune.adapter=" + golden.folder());

        for (String err : List.of(refused.err(), checked.err())) {
            assertThat(err)
                    .contains("fine-tune.adapter needs fine-tune.method = lora")
                    .doesNotContain("NoSuchElement", "\tat ");
        }
        assertThat(checked.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
    }

    @Test
    void frozenParametersOfAFullRunStayAsTheyAre() throws IOException {
        Path own = Files.createDirectories(folder.resolve("frozen"));
        Training training =
                Training.golden(own, true)
                        .set("run.steps=2", "checkpoint.every=1", "pipeline.stages=2")
                        .set("fine-tune.freeze=[\"w*\", \"h.0.*\"]");
        training.complete();
        Path step = training.directory().resolve("checkpoints").resolve("step-000002");

        assertThat(Cli.run("checkpoint", "inspect", step.toString()).out())
                .containsPattern(
                        "trained {5}full; without w\\*, h\\.0\\.\\*: [0-9,]+ of [0-9,]+ p");
        try (var reader = SavedCheckpoint.open(step).read();
                Arena arena = Arena.ofConfined();
                SafetensorsFile before =
                        SafetensorsFile.open(Training.golden("tied.init.safetensors"))) {
            for (String name : List.of("wte.weight", "wpe.weight", "h.0.ln_1.bias")) {
                assertThat(reader.read(name, arena).orElseThrow().toFloats())
                        .as(name)
                        .isEqualTo(before.tensor(name).toFloats());
            }
            assertThat(reader.read("h.1.ln_1.bias", arena).orElseThrow().toFloats())
                    .isNotEqualTo(before.tensor("h.1.ln_1.bias").toFloats());
            assertThat(reader.find("optimizer.m.wte.weight")).isEmpty();
        }
    }
}
