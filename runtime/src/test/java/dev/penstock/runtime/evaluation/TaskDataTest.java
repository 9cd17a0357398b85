package dev.penstock.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What becomes of files before a model sees them. */
class TaskDataTest {
    private static final int CONTEXT = 200;
    private static final Tokenizer BYTES = Tokenizer.named("bytes");
    private static final TaskRequest CHOICES =
            new TaskRequest(TaskKind.CHOICES, Protocol.LM_EVAL, OptionalInt.empty());
    private static final TaskRequest LAST_WORDS =
            new TaskRequest(TaskKind.LAMBADA, Protocol.MEGATRON, OptionalInt.empty());
    private static final TaskRequest PAGES =
            new TaskRequest(TaskKind.WIKITEXT, Protocol.LM_EVAL, OptionalInt.empty());

    @TempDir Path folder;

    private static String text(Window window) {
        int[] tokens = new int[window.count()];
        Arrays.setAll(tokens, window::token);
        return BYTES.decode(tokens);
    }

    private List<String> windows(TaskRequest request, String name, String... lines)
            throws IOException {
        Path file = Files.writeString(folder.resolve(name), String.join("\n", lines));
        return TaskData.of(file, false).prepare(request, BYTES, CONTEXT).windows().stream()
                .map(TaskDataTest::text)
                .toList();
    }

    /** By hand from the harness's rules: titles, brackets, doubled blanks, capitals. */
    @Test
    void linesOfHellaSwagAndPiqaArePreparedAsTheHarnessDoes() throws IOException {
        assertThat(
                        windows(
                                CHOICES,
                                "questions.jsonl",
                                """
                                {"activity_label": "Roof", "ctx_a": "A man sits. [step] He waits.", "ctx_b": "the MAN", "endings": [" stands up.", "[title] goes [substeps] home  now."], "label": "1"}""",
                                """
                                {"goal": "Open a jar.", "sol1": "Turn it", "sol2": "Eat it", "label": 0}""",
                                """
                                {"context": "One and ", "choices": ["two", "more"], "answer": 0}"""))
                .containsExactly(
                        "Roof: A man sits. He waits. The man stands up.",
                        "Roof: A man sits. He waits. The man  goes home now.",
                        "Question: Open a jar.\nAnswer: Turn it",
                        "Question: Open a jar.\nAnswer: Eat it",
                        "One and  two",
                        "One and  more");
    }

    @Test
    void pagesBeginAtTheirTitlesAndAfterTheTokenThatBeginsAText() throws IOException {
        assertThat(
                        windows(
                                PAGES,
                                "wiki.txt",
                                " ",
                                " = One = ",
                                " ",
                                " a @-@ b ",
                                " = = Part = = ",
                                " = Two = ",
                                " c "))
                .containsExactly("\n = One =\n\na-b\n== Part == ", "\n = Two =\nc ");
    }

    @Test
    void tokensOfATargetAreThoseOfTheWholeText() {
        Tokenizer gpt2 = Tokenizer.named("gpt2");

        var pair = ContextAndTarget.of(gpt2, "The end of the ", " word");
        var alone = ContextAndTarget.of(gpt2, "", " word");

        assertThat(gpt2.decode(pair.context())).isEqualTo("The end of the");
        assertThat(gpt2.decode(pair.target())).isEqualTo("  word");
        assertThat(alone.context()).containsExactly(gpt2.endOfText().orElseThrow());
        assertThat(alone.target()).isEqualTo(gpt2.encode(" word"));
    }

    /** An answer that is rounded or cut to the bits of an int would count as another. */
    @Test
    void answersAndChoicesAreWhatTheySayOrRefusedOnce() {
        for (String answer : List.of("4294967297", "1.7", "true", "\"1.0\"", "null", "-1", "2")) {
            assertThat(
                            problemsOf(
                                    "{\"context\":\"a\",\"choices\":[\"b\",\"c\"],\"answer\":%s}",
                                    answer))
                    .singleElement()
                    .asString()
                    .contains("expected an answer from 0 to 1");
        }
        for (String choices : List.of("[\"b\", 7]", "\"bc\"", "null", "[]", "[\"b\"]")) {
            assertThat(problemsOf("{\"context\":\"a\",\"choices\":%s,\"answer\":0}", choices))
                    .hasSize(1);
        }
        assertThat(problemsOf("{\"goal\":\"a\",\"sol1\":\"b\",\"label\":%s}", "0")).hasSize(1);
        assertThat(problemsOf("{\"context\": %s", "\"a\""))
                .singleElement()
                .asString()
                .contains("not JSON")
                .doesNotContain("Source");
    }

    private List<DataProblem> problemsOf(String line, String member) {
        return catchThrowableOfType(
                        DataException.class,
                        () -> windows(CHOICES, "one.jsonl", line.formatted(member)))
                .problems();
    }

    @Test
    void atLeastTwentyWrongLinesAreToldAndHowManyMore() {
        String[] lines = new String[25];
        Arrays.fill(lines, "{}");

        assertThatThrownBy(() -> windows(LAST_WORDS, "wrong.jsonl", lines))
                .hasMessageContaining("wrong.jsonl:20: expected the text member 'text'")
                .hasMessageNotContaining("wrong.jsonl:21")
                .hasMessageContaining("5 more");
    }

    @Test
    void filesInWhichThereIsNothingToGuessAreAllNamed() throws IOException {
        Files.writeString(folder.resolve("a.txt"), "");
        Files.writeString(folder.resolve("b.txt"), "text");
        Files.writeString(folder.resolve("c.txt"), "t");
        Files.writeString(folder.resolve("none.jsonl"), "\n\n");

        assertThatThrownBy(
                        () ->
                                TaskData.of(folder.resolve("*.txt"), true)
                                        .prepare(TaskRequest.PLAIN_TEXT, BYTES, CONTEXT))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("a.txt: expected at least 2 tokens")
                .hasMessageContaining("c.txt: expected at least 2 tokens")
                .hasMessageNotContaining("b.txt");
        assertThatThrownBy(
                        () ->
                                TaskData.of(folder.resolve("none.jsonl"), false)
                                        .prepare(CHOICES, BYTES, CONTEXT))
                .hasMessageContaining("none.jsonl: expected at least one line");
    }

    @Test
    void bytesThatAreNoTextAreRefused() throws IOException {
        Path file = Files.write(folder.resolve("latin.txt"), new byte[] {'a', ' ', (byte) 0xe9});

        assertThatThrownBy(() -> TaskData.of(file, false).prepare(PAGES, BYTES, CONTEXT))
                .hasMessageContaining("latin.txt: expected UTF-8");
    }
}
