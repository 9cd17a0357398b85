package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.rows.Masking;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MaskedWordsTest {
    private static final int CONTEXT = 100;
    private static final int SEQUENCES = 8;
    private static final int ROW = CONTEXT + 1;
    private static final int MASK = 256;
    private static final Path GOLDEN =
            Path.of("src/test/resources/golden-models/bert-post-ln/tokens.safetensors");

    @TempDir private Path folder;

    private Path text = Path.of("");

    @BeforeEach
    void write() throws IOException {
        text = Files.writeString(folder.resolve("text"), "a long text of few words. ".repeat(900));
    }

    private TrainingData data(int microBatches, double share) {
        return TrainingData.open(spec(microBatches).marking(masked(share)));
    }

    private DataSpec spec(int microBatches) {
        DataSpec plain = Specs.of(text).shape(MASK + 1, CONTEXT, SEQUENCES, 5).spec();
        return new DataSpec(
                plain.source(),
                plain.format(),
                plain.field(),
                plain.tokenizer(),
                plain.vocabulary(),
                plain.validationFraction(),
                plain.context(),
                plain.sequences(),
                microBatches,
                plain.smallerLast(),
                plain.steps(),
                plain.seed());
    }

    private static Marking masked(double share) {
        return new Marking(
                false, false, Optional.empty(), Optional.of(new Masking(share, MASK, 256)));
    }

    /** 20,000 tokens: three standard deviations are 0.8 % of all and 2.2 % of the chosen. */
    @Test
    void theSharesAreThoseOfThePaper() {
        TrainingData data = data(1, 0.15);
        int chosen = 0;
        int hidden = 0;
        int kept = 0;
        for (int step = 1; step <= 25; step++) {
            int[] words = new int[SEQUENCES * ROW];
            int[] inputs = new int[SEQUENCES * ROW];
            byte[] marks = new byte[SEQUENCES * ROW];
            data.read(StepKind.TRAIN, step, 0, words);
            data.inputs(StepKind.TRAIN, step, 0, inputs);
            data.marks(StepKind.TRAIN, step, 0, marks);
            for (int i = 0; i < words.length; i++) {
                if (!data.counts(marks[i])) {
                    assertThat(inputs[i]).isEqualTo(words[i]);
                    continue;
                }
                assertThat(i % ROW).isLessThan(CONTEXT);
                chosen++;
                hidden += inputs[i] == MASK ? 1 : 0;
                kept += inputs[i] == words[i] ? 1 : 0;
            }
        }
        assertThat(chosen / 20_000.0).isCloseTo(0.15, within(0.008));
        assertThat(hidden / (double) chosen).isCloseTo(0.8, within(0.022));
        assertThat(kept / (double) chosen).isCloseTo(0.1, within(0.022));
    }

    @Test
    void whatIsHiddenDependsOnTheSequenceAndNotOnMicroBatches() {
        int[] whole = new int[SEQUENCES * ROW];
        int[] part = new int[2 * ROW];

        data(1, 0.3).inputs(StepKind.TRAIN, 3, 0, whole);

        for (int m = 0; m < 4; m++) {
            data(4, 0.3).inputs(StepKind.TRAIN, 3, m, part);
            for (int i = 0; i < part.length; i++) {
                assertThat(part[i]).isEqualTo(whole[m * part.length + i]);
            }
        }
    }

    @Test
    void everyStepAndSequenceHidesOtherPlacesAndAnEvaluationTheSameOnes() {
        byte[] first = marks(StepKind.TRAIN, 1);

        assertThat(marks(StepKind.TRAIN, 2)).isNotEqualTo(first);
        assertThat(marks(StepKind.EVALUATE, 0)).isEqualTo(marks(StepKind.EVALUATE, 0));
        assertThat(Arrays.copyOf(first, ROW)).isNotEqualTo(Arrays.copyOfRange(first, ROW, 2 * ROW));
    }

    private byte[] marks(StepKind kind, long step) {
        byte[] marks = new byte[SEQUENCES * ROW];
        data(1, 0.15).marks(kind, step, 0, marks);
        return marks;
    }

    @Test
    void theTargetsOfAnEvaluationAreThoseThatAreCounted() {
        TrainingData data = data(1, 0.15);
        byte[] marks = marks(StepKind.EVALUATE, 0);
        int counted = 0;
        for (byte mark : marks) {
            counted += data.counts(mark) ? 1 : 0;
        }

        assertThat(data.heldOutTargets(SEQUENCES)).isEqualTo(counted).isPositive();
    }

    @Test
    void aFileWithLabelsSaysByItselfWhatIsHidden() {
        DataSpec spec =
                Specs.of(GOLDEN)
                        .format(DataFormat.TOKENS)
                        .shape(64, 16, 4, 12)
                        .spec()
                        .marking(
                                new Marking(
                                        false,
                                        false,
                                        Optional.empty(),
                                        Optional.of(new Masking(0.15, 3, 64))));
        TrainingData data = TrainingData.open(spec);
        int[] words = new int[2 * 17];
        int[] inputs = new int[2 * 17];
        byte[] marks = new byte[2 * 17];

        data.read(StepKind.TRAIN, 12, 1, words);
        data.inputs(StepKind.TRAIN, 12, 1, inputs);
        data.marks(StepKind.TRAIN, 12, 1, marks);

        assertThat(data.inPlace()).isTrue();
        try (SafetensorsFile file = SafetensorsFile.open(GOLDEN)) {
            StoredTensor tokens = file.tensor("tokens");
            StoredTensor labels = file.tensor("labels");
            for (int b = 0; b < 2; b++) {
                assertThat(data.counts(marks[b * 17 + 16])).isFalse();
                for (int t = 0; t < 16; t++) {
                    long at = (11L * 4 + 2 + b) * 16 + t;
                    int here = b * 17 + t;
                    assertThat(inputs[here]).isEqualTo((int) tokens.integer(at));
                    assertThat(data.counts(marks[here])).isEqualTo(labels.integer(at) >= 0);
                    if (labels.integer(at) >= 0) {
                        assertThat(words[here]).isEqualTo((int) labels.integer(at));
                    }
                }
            }
        }
        DataSpec small = Specs.of(GOLDEN).format(DataFormat.TOKENS).shape(64, 15, 4, 12).spec();
        assertThatThrownBy(() -> TrainingData.open(small.marking(spec.marking())))
                .hasMessageContaining("rows of 15 tokens (context)")
                .hasMessageContaining("set model.context = 16");
    }
}
