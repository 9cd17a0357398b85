package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.model.GoldenFamily;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run whose model comes from a folder goes on with that model, wherever the folder is. */
class ModelOfARunTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir private Path folder;

    private Path model(String golden, String name) throws IOException {
        Path copy = Files.createDirectories(folder.resolve(name)).resolve("config.json");
        String text = Files.readString(new GoldenFamily(golden).path("config.json"));
        Files.writeString(copy, text.replace("\"vocab_size\": 64", "\"vocab_size\": 256"));
        return folder.resolve(name);
    }

    /** Without what {@code model} in the tiny run's file says beside the folder. */
    private Training training(Path model) throws IOException {
        Training training = Training.onText(folder);
        Path file = training.configuration();
        String text = Files.readString(file);
        Files.writeString(file, text.replaceFirst("model \\{.*\\}", "model { context = 16 }"));
        return training.set("model.from=" + model, "run.steps=2", "checkpoint.every=1")
                .set("evaluation.every=0");
    }

    @Test
    void aMovedFolderOfTheSameModelDoesNotStopARun() throws IOException {
        Path first = model("llama", "llama");
        Training training = training(first);
        training.complete();
        Path moved = Files.move(first, folder.resolve("moved"));

        Cli evaluated = Cli.run("evaluate", training.directory().toString());
        Trained ended =
                training.copy().resume().set("model.from=" + moved, "run.steps=3").complete();

        assertThat(evaluated.err()).doesNotContain("model.from");
        assertThat(evaluated.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(ended.losses()).hasSize(3);
    }

    /** Its sequences are shorter than the model has positions for. */
    @Test
    void tasksSeeTheContextOfTheRunWhileItTrainsAndAfterwards() throws IOException {
        Path text =
                Files.writeString(folder.resolve("other.txt"), "to be or not to be, ".repeat(9));
        Training training =
                training(model("llama", "llama"))
                        .set(
                                "evaluation.every=1",
                                "evaluation.tasks=[{ data = \"%s\" }]".formatted(text));
        training.complete();
        Path run = training.directory();
        Path checkpoint = run.resolve("checkpoints").resolve("step-000002");
        JsonNode during =
                JSON.readTree(Files.readString(run.resolve("summary.json"))).get("tasks").get(0);

        JsonNode after = measured(run, text);
        JsonNode alone = measured(checkpoint, text);
        JsonNode longer = measured(run, text, "--context=24");
        Cli table = Cli.run("evaluate", run.toString(), "--data", text.toString());
        Cli tooLong =
                Cli.run("evaluate", run.toString(), "--data", text.toString(), "--context=9999");

        for (JsonNode answer : List.of(after, alone)) {
            assertThat(answer.get("context")).isEqualTo(during.get("context"));
            assertThat(answer.get("loss")).isEqualTo(during.get("measures").get("loss"));
        }
        assertThat(after.get("context").asInt()).isEqualTo(16);
        assertThat(longer.get("context").asInt()).isEqualTo(24);
        assertThat(longer.get("loss")).isNotEqualTo(after.get("loss"));
        assertThat(table.out()).containsPattern("protocol +context").containsPattern("plain +16 ");
        assertThat(Files.readString(run.resolve("report.html")))
                .contains("text by plain, other.txt, context 16");
        assertThat(tooLong.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(tooLong.err()).contains("--context: expected at most", "got 9999");
    }

    private static JsonNode measured(Path model, Path text, String... options) throws IOException {
        List<String> words = new ArrayList<>(List.of("evaluate", model.toString(), "--json"));
        words.addAll(List.of("--data", text.toString()));
        words.addAll(List.of(options));
        Cli evaluate = Cli.run(words.toArray(String[]::new));
        assertThat(evaluate.exitCode()).as(evaluate.err()).isEqualTo(ExitCode.OK);
        return JSON.readTree(evaluate.out());
    }

    /** All that the folder said is in the run's own configuration. */
    @Test
    void aRunGoesOnWithoutTheFolderOfItsModel() throws IOException {
        Path gone = model("qwen3", "qwen3");
        Training training = training(gone);
        training.complete();
        Files.delete(gone.resolve("config.json"));
        Files.delete(gone);

        Trained ended = training.copy().resume().set("run.steps=3").complete();
        Trained fresh = Training.onText(folder.resolve("new")).set("model.from=" + gone).run();

        assertThat(ended.losses()).hasSize(3);
        assertThat(fresh.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(fresh.err()).contains("model.from", "nothing readable is at");
    }

    /** A run's own configuration, used as a new one's: whoever writes a path means it. */
    @Test
    void aPathToNoModelIsToldThoughEveryKeyOfTheModelIsThere() throws IOException {
        Path gone = model("llama", "llama");
        Training training = training(gone);
        training.complete();
        Files.delete(gone.resolve("config.json"));
        String resolved = training.directory().resolve("resolved.conf").toString();

        Cli check = Cli.run("config", "check", resolved);
        Cli with = Cli.run("config", "check", resolved, "--set", "model.from=none");

        assertThat(check.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(check.err()).contains("model.from").doesNotContain("problems");
        assertThat(with.exitCode()).as(with.err()).isEqualTo(ExitCode.OK);
    }

    @Test
    void anotherModelInTheSameFolderIsRefusedByWhatItHasOtherwise() throws IOException {
        Path from = model("llama", "model");
        Training training = training(from);
        training.complete();
        Path config = from.resolve("config.json");
        String theta = "\"rope_theta\": 10000.0";
        assertThat(Files.readString(config)).contains(theta);
        Files.writeString(
                config, Files.readString(config).replace(theta, "\"rope_theta\": 500000.0"));

        Trained other = training.copy().resume().set("run.steps=3").run();

        assertThat(other.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(other.err()).contains("model.theta: the weights have 10000.0");
    }

    /** Places that turn heads have no table that would not fit. */
    @Test
    void sequencesOfAnotherLengthAreToldInALine() throws IOException {
        Training training =
                Training.onText(folder)
                        .set("model={family=llama, heads=2}", "model.positions=64")
                        .set("run.steps=1", "checkpoint.every=1", "evaluation.every=0");
        training.complete();

        Trained longer = training.copy().resume().set("model.context=48", "run.steps=2").complete();

        assertThat(longer.err().lines())
                .containsOnlyOnce(
                        "penstock: sequences have another length, model.context 32 -> 48: the data"
                                + " is cut anew, and places from 32 on are new to the model");
        assertThat(longer.losses()).hasSize(2);
    }
}
