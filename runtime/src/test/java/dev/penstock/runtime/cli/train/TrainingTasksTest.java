package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TrainingTasksTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path folder;

    /** Of two stages that share the training, while the tasks are measured by one. */
    @Test
    void tasksAreMeasuredWithTheCheckpointsOfEvaluations() throws IOException {
        Files.writeString(
                folder.resolve("words.jsonl"),
                "{\"text\": \"to be or not to be\"}\n{\"text\": \"that is the question\"}\n");
        Path run = folder.resolve("run");

        Cli train = Cli.run("train", config("words.jsonl").toString(), "--run-dir", run.toString());

        assertThat(train.exitCode()).as(train.err()).isEqualTo(ExitCode.OK);
        List<JsonNode> lines = taskLines(run);
        assertThat(lines).extracting(line -> line.get("step").asInt()).containsExactly(2, 2, 4, 4);
        assertThat(lines)
                .extracting(line -> line.get("protocol").asText())
                .containsExactly("lm-eval", "plain", "lm-eval", "plain");
        JsonNode after =
                JSON.readTree(
                        Cli.run(
                                        "evaluate",
                                        run.toString(),
                                        "--task=lambada",
                                        "--protocol=lm-eval",
                                        "--data=" + folder.resolve("words.jsonl"),
                                        "--json")
                                .out());
        JsonNode last = lines.get(2).get("measures");
        assertThat(last.get("texts").asInt()).isEqualTo(2);
        assertThat(last.get("perplexity").asDouble()).isEqualTo(after.get("perplexity").asDouble());
        assertThat(train.out()).contains("lambada by lm-eval, words.jsonl, after step 4");
        assertThat(Files.readString(run.resolve("report.html")))
                .contains("<h2>Tasks</h2>", "lambada by lm-eval, words.jsonl", "bits per byte");
        JsonNode summary = JSON.readTree(Files.readString(run.resolve("summary.json")));
        assertThat(summary.get("tasks")).hasSize(2);
        assertThat(summary.get("tasks").get(0).get("measures")).isEqualTo(last);
    }

    @Test
    void theirFiguresHaveTheSameBitsHoweverTheTrainingIsDivided() throws IOException {
        Files.writeString(folder.resolve("words.jsonl"), "{\"text\": \"to be or not to be\"}\n");
        List<List<JsonNode>> measures = new ArrayList<>();

        for (String layout : List.of("pipeline.stages=2", "pipeline.stages=1")) {
            Path run = folder.resolve(layout);
            Cli train =
                    Cli.run(
                            "train",
                            config("words.jsonl").toString(),
                            "--run-dir=" + run,
                            "--set=run.steps=2",
                            "--set=" + layout);
            assertThat(train.exitCode()).as(train.err()).isEqualTo(ExitCode.OK);
            measures.add(taskLines(run).stream().map(line -> line.get("measures")).toList());
        }

        assertThat(measures.get(0)).hasSize(2).isEqualTo(measures.get(1));
    }

    private static List<JsonNode> taskLines(Path run) throws IOException {
        List<JsonNode> lines = new ArrayList<>();
        for (String line : Files.readAllLines(run.resolve("metrics.jsonl"))) {
            JsonNode read = JSON.readTree(line);
            if (read.get("type").asText().equals("task")) {
                lines.add(read);
            }
        }
        return lines;
    }

    @Test
    void filesOfTasksAreReadBeforeAnythingIsMade() throws IOException {
        Files.writeString(folder.resolve("bad.jsonl"), "{\"text\": 3}\n");

        Cli train =
                Cli.run(
                        "train",
                        config("bad.jsonl").toString(),
                        "--run-dir",
                        folder.resolve("run").toString());

        assertThat(train.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(train.err())
                .contains(
                        "evaluation.tasks: expected the text member 'text'", "bad.jsonl:1", "got");
        assertThat(folder.resolve("run")).doesNotExist();
    }

    private Path config(String words) throws IOException {
        Files.writeString(folder.resolve("text.txt"), "to be or not to be, ".repeat(200));
        return Files.writeString(
                folder.resolve("small.conf"),
                """
                run.steps = 4
                model { context = 32, width = 16, layers = 2, heads = 2 }
                data { source = text.txt, validation-fraction = 0.2 }
                batch { sequences = 2, micro-batches = 2 }
                pipeline.stages = 2
                device { gemm = java, threads = 1 }
                checkpoint.every = 1
                report { dashboard = false, sample = false }
                evaluation {
                  every = 2, batches = 1
                  tasks = [
                    { task = lambada, protocol = lm-eval, data = "%s" }
                    { data = text.txt }
                  ]
                }
                """
                        .formatted(words));
    }
}
