package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LayoutChangesTest {
    private static final String BEFORE =
            """
            run { steps = 5 }
            data { tokenizer = bytes }
            pipeline { stages = 1, partition = [2, 1] }
            schedule { kind = 1f1b }
            """;

    @Test
    void whatIsLaidOutAnewIsNamed() {
        var changes =
                new LayoutChanges(
                        BEFORE,
                        """
                        run { steps = 9 }
                        data { tokenizer = bytes }
                        pipeline { stages = 2, partition = [1, 2] }
                        parallel { data = 2 }
                        schedule { kind = "zb-h1" }
                        """);

        assertThat(changes.layout())
                .containsExactly(
                        "pipeline.partition [2,1] -> [1,2]",
                        "pipeline.stages 1 -> 2",
                        "schedule.kind 1f1b -> zb-h1");
        assertThat(changes.tokenizerBefore()).hasValue("bytes");
    }

    @Test
    void whatDecidesBitsIsNamedAndTheRestOfItsSectionIsNot() {
        var changes =
                new LayoutChanges(
                        "optimizer { gradient-sum = float32, beta1 = 0.9 }"
                                + ", device { precision = float32, threads = 1 }",
                        "optimizer { gradient-sum = fixed-point, beta1 = 0.8 }"
                                + ", device { precision = bf16, threads = 2 }");

        assertThat(changes.layout())
                .containsExactly(
                        "device.precision float32 -> bf16",
                        "optimizer.gradient-sum float32 -> fixed-point");
        assertThat(new LayoutChanges(BEFORE, "optimizer { gradient-sum = float32 }").layout())
                .isEmpty();
    }

    @Test
    void stepsOfAnotherSizeReadAnotherPlaceOfTheData() {
        String before = "batch { sequences = 8 }";

        assertThat(new LayoutChanges(before, before).dataOrder(100)).isEmpty();
        assertThat(new LayoutChanges(before, "batch { sequences = 12 }").dataOrder(0)).isEmpty();
        assertThat(new LayoutChanges(before, "batch { sequences = 12 }").dataOrder(100))
                .hasValue(
                        "the data continues after 1,200 sequences (100 steps of batch.sequences ="
                                + " 12), where steps of 8 would have come to 800: what lies"
                                + " between is left out");
        assertThat(new LayoutChanges(before, "batch { sequences = 6 }").dataOrder(100))
                .hasValue(
                        "the data continues after 600 sequences (100 steps of batch.sequences = 6),"
                                + " where steps of 8 would have come to 800: what lies between is"
                                + " read a second time");
    }

    /** Whether it is the same is told by what it does, not by its name. */
    @Test
    void theTokenizerOfBeforeIsTold() {
        var changes = new LayoutChanges(BEFORE, BEFORE.replace("bytes", "gpt2"));

        assertThat(changes.layout()).isEmpty();
        assertThat(changes.tokenizerBefore()).hasValue("bytes");
        assertThat(new LayoutChanges("run { steps = 5 }", BEFORE).tokenizerBefore()).isEmpty();
    }

    @Test
    void sequencesOfAnotherLengthAreTold() {
        String before = "model { context = 64 }";

        assertThat(new LayoutChanges(before, before).context()).isEmpty();
        assertThat(new LayoutChanges("", before).context()).isEmpty();
        assertThat(new LayoutChanges(before, "model { context = 96 }").context())
                .hasValue(
                        "sequences have another length, model.context 64 -> 96: the data is cut"
                                + " anew, and places from 64 on are new to the model");
        assertThat(new LayoutChanges(before, "model { context = 32 }").context())
                .hasValue(
                        "sequences have another length, model.context 64 -> 32: the data is cut"
                                + " anew");
    }
}
