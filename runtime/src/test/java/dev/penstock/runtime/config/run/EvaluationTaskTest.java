package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.config.reading.ConfigException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EvaluationTaskTest {
    @TempDir Path folder;

    @BeforeEach
    void writeFiles() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "x");
        Files.writeString(folder.resolve("words.jsonl"), "{}");
    }

    @Test
    void entriesAreReadAndWrittenAgainAsTheyWere() throws IOException {
        RunConfig config =
                load(
                        """
                        { task = lambada, protocol = lm-eval, data = words.jsonl },
                        { data = corpus.txt, stride = 8 }
                        """);

        List<EvaluationTask> tasks = config.evaluation().tasks();
        assertThat(tasks).extracting(EvaluationTask::data).allMatch(Path::isAbsolute);
        assertThat(tasks.get(0).written())
                .startsWith("{ task = lambada, protocol = lm-eval, data = ");
        assertThat(tasks.get(1).written())
                .startsWith("{ task = text, protocol = plain, data = ")
                .endsWith(", stride = 8 }");
        Path again = Files.writeString(folder.resolve("again.conf"), config.resolved());
        assertThat(ConfigLoader.load(again, List.of())).isEqualTo(config);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{ task = squad, data = corpus.txt } | one of text, wikitext, lambada, choices, got squad",
                "{ task = lambada, data = words.jsonl } | megatron or lm-eval for task lambada, got none",
                "{ task = choices, data = none.jsonl } | nothing readable is at",
                "{ task = choices } | name what it reads with data",
                "{ data = corpus.txt, window = 8 } | window is no member of it",
                "{ data = corpus.txt, stride = many } | stride is a number of tokens",
                "corpus.txt | evaluation.tasks[0]: expected { task = text|wikitext"
            })
    void anEntryThatIsNotATaskIsRefused(String entry, String told) {
        assertThatThrownBy(() -> load(entry))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("evaluation.tasks")
                .hasMessageContaining(told);
    }

    @Test
    void allThatIsWrongInAllEntriesIsToldWithItsPlace() {
        assertThatThrownBy(
                        () ->
                                load(
                                        """
                                        { task = squad, data = none.txt },
                                        { data = corpus.txt },
                                        { task = lambada, data = words.jsonl, window = 8 }
                                        """))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("evaluation.tasks[0].task: expected one of text, wikitext")
                .hasMessageContaining("evaluation.tasks[0].data: expected a file")
                .hasMessageContaining("evaluation.tasks[2].protocol: expected megatron or lm-eval")
                .hasMessageContaining("evaluation.tasks[2].window: expected one of task, data")
                .hasMessageNotContaining("evaluation.tasks[1]")
                .message()
                .hasLineCount(4);
    }

    @Test
    void tasksNeedACheckpointAtEveryEvaluation() {
        assertThatThrownBy(() -> load("{ data = corpus.txt }", "checkpoint.every=20"))
                .hasMessageContaining("evaluation.every")
                .hasMessageContaining("a multiple of checkpoint.every = 20");
        assertThatThrownBy(() -> load("{ data = corpus.txt }", "checkpoint.every=0"))
                .hasMessageContaining("evaluation.every");
    }

    private RunConfig load(String entries, String... overrides) throws IOException {
        Path file =
                Files.writeString(
                        folder.resolve("run.conf"),
                        "data.source = corpus.txt, evaluation.every = 50, checkpoint.every = 25,"
                                + " evaluation.tasks = ["
                                + entries
                                + "]");
        return ConfigLoader.load(file, List.of(overrides));
    }
}
