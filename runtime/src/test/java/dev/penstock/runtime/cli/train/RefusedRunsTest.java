package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs that cannot be say why, all of it, and leave nothing behind. */
class RefusedRunsTest {
    @TempDir Path folder;

    @Test
    void slipsOfThePenAreAllToldAtOnceWithSuggestions() throws IOException {
        Trained refused =
                Training.onText(folder)
                        .set("model.widht=3", "batch.sequences=many", "model.heads=5")
                        .set("pipeline.stages=9")
                        .run();

        assertThat(refused.err())
                .startsWith("penstock: 4 problems")
                .contains("model.widht", "did you mean model.width?")
                .contains("batch.sequences: expected an integer", "\"many\"")
                .contains("model.width: expected a multiple of model.heads = 5, got 32")
                .contains("pipeline.stages: expected at most 4");
        expectNothingStarted(refused);
    }

    @Test
    void targetsOfAdaptersAreLookedAtWhateverTheMethod() throws IOException {
        Trained refused =
                Training.onText(folder)
                        .set("fine-tune.method=lroa", "fine-tune.targets=[c_attn, q_prog]")
                        .run();

        assertThat(refused.err())
                .startsWith("penstock: 2 problems")
                .contains("fine-tune.method: expected one of full, lora", "did you mean lora?")
                .contains("fine-tune.targets: expected layers of the model", "got others")
                .contains("q_prog");
        expectNothingStarted(refused);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    data.source=nowhere.txt                | data.source     | nowhere.txt
                    model.context=30000                    | data.source     | 30001
                    data.format=tokens                     | data.source     | safetensors
                    schedule.file=nowhere.order            | schedule.file   | nowhere.order
                    model.width=512, device.memory-limit=1 MiB | device.memory-limit | stage 0
                    data-plane.transport=udp, data-plane.host="0.0.0.0" | data-plane.host | data-plane.insecure = true
                    """)
    void whatIsFoundOnlyWhenReadingIsReportedAtItsKey(String settings, String key, String said)
            throws IOException {
        Trained refused = Training.onText(folder).set(each(settings)).run();

        assertThat(refused.err()).startsWith("penstock: ").contains(key, said);
        expectNothingStarted(refused);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "device.swap=FILE, pipeline.stages=1, pipeline.chunks=4, schedule.kind=breadth-first",
                "parallel.zero.offload=FILE, parallel.zero.stage=1",
                "device.offload=FILE, schedule.offload=all, schedule.kind=gpipe"
            })
    void aFolderThatIsAFileIsNamedBeforeAnythingStarts(String settings) throws IOException {
        Path file = folder.resolve("text.txt");

        Trained refused =
                Training.onText(folder).set(each(settings.replace("FILE", file.toString()))).run();

        assertThat(refused.err())
                .contains(settings.substring(0, settings.indexOf('=')) + ": expected a folder")
                .contains(file + " is no folder that can be written");
        expectNothingStarted(refused);
    }

    /** Above all none overflows on its way to the actors. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "run.steps",
                "model.context",
                "model.width",
                "model.layers",
                "model.heads",
                "model.vocabulary",
                "batch.sequences",
                "batch.micro-batches",
                "pipeline.stages",
                "pipeline.chunks",
                "parallel.tensor",
                "parallel.context",
                "parallel.data",
                "schedule.slices",
                "optimizer.warmup-steps",
                "device.reduction-block",
                "evaluation.batches",
                "data-plane.in-flight"
            })
    void aHugeNumberIsTakenOrRefusedAtItsKey(String key) {
        for (String number : List.of("99999999999999", "2147483647", "1000000000", "65536")) {
            Cli checked =
                    Cli.run(
                            "config",
                            "check",
                            Training.onText(folder).configuration().toString(),
                            "--set",
                            key + "=" + number);

            assertThat(checked.exitCode())
                    .as("%s = %s: %s", key, number, checked.err())
                    .isIn(ExitCode.OK, ExitCode.BAD_INPUT);
            if (number.length() > 10) {
                assertThat(checked.err()).contains(key, "at most");
            }
        }
    }

    @Test
    void aGpuWhereThereIsNoneIsRefusedBeforeAnythingStarts() throws IOException {
        assumeTrue(Devices.gpus().isEmpty(), "there is a GPU here");
        Trained refused = Training.onText(folder).set("device.kind=cuda").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains(
                        "device.kind: expected an NVIDIA GPU on this machine", "device.kind = cpu");
        expectNothingStarted(refused);
    }

    @Test
    void aLibraryThatIsNotUsedHereIsRefusedBeforeAnythingStarts() throws IOException {
        Trained asked = Training.onText(folder).set("device.gemm=onednn", "run.steps=2").run();

        Optional<String> reason = Devices.whyNot(DeviceSettings.Gemm.ONEDNN);
        if (reason.isEmpty()) {
            assertThat(asked.exitCode()).isEqualTo(ExitCode.OK);
        } else {
            assertThat(asked.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(asked.err()).contains("device.gemm: expected", reason.get(), "= auto");
            expectNothingStarted(asked);
        }
    }

    @Test
    void whatNeedsMoreMemoryThanTheMachineHasIsRefusedInAFewLines() throws IOException {
        Trained refused =
                Training.onText(folder)
                        .set("batch={sequences=3000000, micro-batches=1}", "model.width=512")
                        // what kernels need is found block by block
                        .set("device.reduction-block=65536")
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("this machine's memory of", "for 2 ranks", "batch.micro-batches");
        assertThat(refused.err().lines()).hasSizeLessThan(4);
        expectNothingStarted(refused);
    }

    @Test
    void badDataAndABadOrderAreToldTogether() throws IOException {
        Path order = order("rank 0: what", "rank 1: 1F0 1B0");

        Trained refused = onOrder(order).set("model.context=30000").run();

        assertThat(refused.err())
                .startsWith("penstock: 3 problems")
                .contains("order.txt:4", "data.source", "data.validation-fraction");
        expectNothingStarted(refused);
    }

    @Test
    void everythingThatCanBeSaidIsSaidInOneRound() throws IOException {
        Path order = order("rank 0: 0B0 0F0 0F1 0B1", "rank 1: 1F0 1B0 1F1 1B1");

        Trained refused =
                onOrder(order)
                        .set("model.widht=3", "batch.sequences=many", "data.source=nowhere.txt")
                        .set("run.steps", "model.heads=5")
                        .init(folder.resolve("nowhere.safetensors"))
                        .option("--dump-gradients", "0:there")
                        .run();

        assertThat(refused.err())
                .startsWith("penstock: 9 problems")
                .contains("model.widht: expected", "did you mean model.width?")
                .contains("batch.sequences: expected an integer")
                .contains("data.source: expected", "nowhere.txt")
                .contains("--set run.steps: expected key=value")
                .contains("model.width: expected a multiple of model.heads = 5")
                .contains("order.txt:4: expected an order that can run")
                .contains("--init: expected", "nowhere.safetensors")
                .contains("--dump-gradients: expected STEP:FILE");
        expectNothingStarted(refused);
    }

    @Test
    void memoryDataWeightsAndOptionsAreToldTogether() throws IOException {
        Path garbage = Files.writeString(folder.resolve("garbage.safetensors"), "no weights");

        Trained refused =
                Training.onText(folder)
                        .set("device.memory-limit=1 MiB", "model.width=512")
                        .set("data.format=tokens", "run.steps=0")
                        .init(garbage)
                        .option("--dump-gradients", "1:" + folder.resolve("none").resolve("g"))
                        .run();

        assertThat(refused.err())
                .startsWith("penstock: 6 problems")
                .contains("rank 0 with stage 0", "rank 1 with stage 1")
                .contains("data.source: expected a safetensors file")
                .contains("run.steps: expected an integer, at least 1")
                .contains("garbage.safetensors: not a safetensors file")
                .contains("--dump-gradients: expected a file in a folder");
        expectNothingStarted(refused);
    }

    @Test
    void aPlaceThatHoldsARunIsToldWithTheRest() {
        Training training = Training.onText(folder).set("run.steps=2");
        training.complete();

        Trained refused = training.set("batch.sequences=many").run();

        assertThat(refused.err())
                .startsWith("penstock: 2 problems")
                .contains("batch.sequences", "which already holds a run; try --resume");
    }

    @Test
    void gradientsOfAStepThatIsDoneAreRefusedWithTheStepThatComesNext() {
        Training training = Training.onText(folder).set("run.steps=4");
        training.complete();

        Trained refused =
                training.set("run.steps=6")
                        .option("--resume")
                        .option("--dump-gradients", "4:" + folder.resolve("g.safetensors"))
                        .run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("--dump-gradients: expected a step that is still to come")
                .contains("goes on with step 5, got 4");
        assertThat(refused.lossBits()).hasSize(4);
    }

    @Test
    void anOrderThatWouldStandStillIsRefusedAtItsLine() throws IOException {
        Path order = order("rank 0: 0B0 0F0 0F1 0B1", "rank 1: 1F0 1B0 1F1 1B1");

        Trained refused = onOrder(order).run();

        assertThat(refused.err()).contains("order.txt:4").doesNotContain("schedule: ");
        expectNothingStarted(refused);
    }

    @Test
    void anOrderThatLacksWorkIsRefusedWithWhatIsMissing() throws IOException {
        Path order = order("rank 0: 0F0 0F1 0B0 0B1", "rank 1: 1F0 1B0 1F1");

        Trained refused = onOrder(order).run();

        assertThat(refused.err()).contains("order.txt:5", "rank 1 has no 1B1");
        expectNothingStarted(refused);
    }

    @Test
    void weightsThatCannotBeReadAreRefused() throws IOException {
        Path garbage = Files.writeString(folder.resolve("garbage.safetensors"), "no weights");

        for (Path weights : List.of(garbage, folder.resolve("nowhere.safetensors"))) {
            Trained refused = Training.onText(folder).init(weights).run();

            assertThat(refused.err()).contains(weights.getFileName().toString());
            expectNothingStarted(refused);
        }
    }

    @Test
    void weightsOfAnotherShapeAreRefusedWithBothShapes() throws IOException {
        Trained refused = Training.golden(folder, true).set("model.width=48").run();

        assertThat(refused.err())
                .contains("tied.init.safetensors", "wte.weight: expected [64, 48], got [64, 32]")
                .contains("h.0.mlp.c_fc.weight: expected [48, 192], got [32, 128]");
        expectNothingStarted(refused);
    }

    @Test
    void onlyARunThatExistsIsResumed() throws IOException {
        Trained refused = Training.onText(folder).option("--resume").run();

        assertThat(refused.err()).contains(folder.resolve("run").toString());
        expectNothingStarted(refused);
    }

    @Test
    void aFinishedRunIsNotOverwritten() throws IOException {
        Training training = Training.onText(folder).set("run.steps=2");
        Trained trained = training.complete();
        List<String> bits = trained.lossBits();

        Trained refused = training.run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("--resume");
        assertThat(refused.lossBits()).isEqualTo(bits);
    }

    @Test
    void aCheckpointOfAnotherShapeIsRefusedWithBothShapes() throws IOException {
        Training.onText(folder).set("run.steps=2").complete();

        Trained refused = Training.onText(folder).set("model.context=16").option("--resume").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("wpe.weight: expected [16, 32], got [32, 32]");
        assertThat(refused.lossBits()).hasSize(2);
    }

    @Test
    void aRunWhoseCheckpointsAreAllDamagedIsRefusedWithEachFile() throws IOException {
        Path directory = Training.onText(folder).set("run.steps=5").complete().directory();
        for (long step : new long[] {4, 5}) {
            Path checkpoint =
                    CheckpointFolders.of(directory.resolve(CheckpointFolders.FOLDER), step);
            damage(checkpoint.resolve("stage-1.safetensors"));
        }

        Trained refused = Training.onText(folder).option("--resume").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("step-000004", "step-000005", "stage-1.safetensors")
                .doesNotContain("\tat ");
        assertThat(refused.lossBits()).hasSize(5);
    }

    @Test
    void aDamagedCheckpointIsPassedOverForTheOneBefore() throws IOException {
        Training training = Training.onText(folder);
        Trained whole = training.complete();
        List<String> bits = whole.lossBits();
        damage(
                CheckpointFolders.of(whole.directory().resolve(CheckpointFolders.FOLDER), 12)
                        .resolve("stage-0.safetensors"));

        Trained resumed = training.option("--resume").complete();

        assertThat(resumed.err()).contains("step-000012", "stage-0.safetensors", "ignored");
        assertThat(resumed.lossBits()).isEqualTo(bits);
    }

    private Training onOrder(Path order) {
        return Training.onText(folder)
                .set("schedule.file=\"" + order + "\"", "batch.micro-batches=2");
    }

    private Path order(String... ranks) throws IOException {
        return Files.writeString(
                folder.resolve("order.txt"),
                "schedule: mine\nranks: 2\nmicro-batches: 2\n" + String.join("\n", ranks) + "\n");
    }

    private static String[] each(String settings) {
        return settings.split(", ");
    }

    /** Flips a bit in the middle of the file. */
    private static void damage(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length / 2] ^= 4;
        Files.write(file, bytes);
    }

    private void expectNothingStarted(Trained refused) throws IOException {
        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.out()).isEmpty();
        assertThat(refused.err()).doesNotContain("\tat ", "Exception", "unexpected");
        assertThat(refused.directory()).doesNotExist();
        try (Stream<Path> files = Files.list(folder)) {
            assertThat(files)
                    .extracting(file -> file.getFileName().toString())
                    .isSubsetOf("tiny.conf", "text.txt", "order.txt", "garbage.safetensors");
        }
    }
}
