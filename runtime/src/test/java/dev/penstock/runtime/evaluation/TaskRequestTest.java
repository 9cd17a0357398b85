package dev.penstock.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.data.DataProblem;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class TaskRequestTest {
    private final List<DataProblem> problems = new ArrayList<>();

    @Test
    void whereThereIsOneProtocolItNeedNotBeNamed() {
        assertThat(read(null, null, 7))
                .contains(new TaskRequest(TaskKind.TEXT, Protocol.PLAIN, OptionalInt.of(7)));
        assertThat(read("choices", null, null).orElseThrow().protocol())
                .isEqualTo(Protocol.LM_EVAL);
        assertThat(read("wikitext", "megatron", 32)).isPresent();
        assertThat(problems).isEmpty();
    }

    @Test
    void whereThereAreSeveralProtocolsOneMustBeNamed() {
        assertThat(read("lambada", null, null)).isEmpty();

        assertThat(told())
                .containsExactly(
                        "--protocol: expected megatron or lm-eval for task lambada, got none");
    }

    @Test
    void whatIsNotKnownIsRefusedWithWhatIs() {
        assertThat(read("squad", "opencompass", null)).isEmpty();

        assertThat(told())
                .containsExactly(
                        "--task: expected one of text, wikitext, lambada, choices, got squad",
                        "--protocol: expected one of plain, megatron, lm-eval, got opencompass");
    }

    @Test
    void aProtocolOfAnotherTaskIsRefused() {
        assertThat(read("choices", "megatron", null)).isEmpty();
        assertThat(read("text", "lm-eval", null)).isEmpty();

        assertThat(told())
                .containsExactly(
                        "--protocol: expected lm-eval for task choices, got megatron",
                        "--protocol: expected plain for task text, got lm-eval");
    }

    @Test
    void aStrideIsRefusedWhereWindowsAreFixed() {
        assertThat(read("wikitext", "lm-eval", 4)).isEmpty();
        assertThat(read("text", null, 0)).isEmpty();

        assertThat(told())
                .containsExactly(
                        "--stride: expected none for task wikitext by protocol lm-eval, got 4",
                        "--stride: expected 1 or more tokens, got 0");
    }

    private Optional<TaskRequest> read(
            @Nullable String task, @Nullable String protocol, @Nullable Integer stride) {
        return TaskRequest.read(task, protocol, stride, name -> "--" + name, problems);
    }

    private List<String> told() {
        return problems.stream().map(each -> each.toString().replaceFirst(";.*", "")).toList();
    }
}
