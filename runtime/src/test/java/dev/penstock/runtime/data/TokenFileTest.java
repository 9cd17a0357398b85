package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TokenFileTest {
    @TempDir Path folder;

    private static final Path GOLDEN = Path.of("src/test/resources/golden/tokens.safetensors");
    private final Specs golden = Specs.of(GOLDEN).format(DataFormat.TOKENS).shape(64, 16, 4, 20);

    @Test
    void feedsTheTokensOfTheFileInTheirOrder() {
        TrainingData data = TrainingData.open(golden.spec());

        try (SafetensorsFile file = SafetensorsFile.open(GOLDEN)) {
            StoredTensor tokens = file.tensor("tokens");
            for (int step = 1; step <= 20; step++) {
                for (int microBatch = 0; microBatch < 2; microBatch++) {
                    int[] batch = new int[2 * 17];
                    data.read(StepKind.TRAIN, step, microBatch, batch);
                    for (int i = 0; i < batch.length; i++) {
                        long at = ((step - 1) * 2L + microBatch) * 34 + i;
                        assertThat(batch[i]).isEqualTo((int) tokens.integer(at));
                    }
                }
            }
        }
        assertThat(data.hasHeldOut()).isFalse();
        assertThat(data.description()).isEqualTo("1,360 prepared tokens for 20 steps");
    }

    /** Ten sequences in steps of four. */
    @Test
    void sequencesThatAreNotDividedIntoStepsEndWithASmallerOne() throws IOException {
        Specs ten = Specs.of(sequences(10)).format(DataFormat.TOKENS);
        TrainingData data = TrainingData.open(ten.shape(64, 2, 4, 3).smallerLast().spec());

        assertThat(data.sequences(StepKind.TRAIN, 2, 4)).isEqualTo(4);
        assertThat(data.sequences(StepKind.TRAIN, 3, 4)).isEqualTo(2);
        int[] batch = new int[2 * 3];
        data.read(StepKind.TRAIN, 3, 0, batch);
        assertThat(batch).containsExactly(24, 25, 26, 27, 28, 29);
        data.read(StepKind.TRAIN, 3, 1, batch);
        assertThat(batch).containsOnly(0);
        assertThat(TrainingData.open(ten.shape(64, 2, 4, 2).spec()).sequences(StepKind.TRAIN, 2, 4))
                .isEqualTo(4);
        assertThatThrownBy(() -> TrainingData.open(ten.shape(64, 2, 4, 3).spec()))
                .hasMessageContaining("run.steps: expected tokens for 3 steps")
                .hasMessageContaining("set run.steps = 2 or fewer, or batch.last = smaller");
    }

    /** A file of rows of three tokens, 0 1 2, 3 4 5, and so on. */
    private Path sequences(int count) throws IOException {
        byte[] header =
                "{\"tokens\":{\"dtype\":\"I64\",\"shape\":[%d,3],\"data_offsets\":[0,%d]}}"
                        .formatted(count, count * 24)
                        .getBytes(StandardCharsets.UTF_8);
        ByteBuffer file =
                ByteBuffer.allocate(8 + header.length + count * 24).order(ByteOrder.LITTLE_ENDIAN);
        file.putLong(header.length).put(header);
        for (long i = 0; i < count * 3L; i++) {
            file.putLong(i);
        }
        return Files.write(folder.resolve("tokens.safetensors"), file.array());
    }

    @Test
    void saysAllThatDoesNotFitTheRun() {
        assertThatThrownBy(() -> TrainingData.open(golden.shape(64, 8, 6, 21).spec()))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("model.context: expected rows of 9 tokens")
                .hasMessageContaining("set model.context = 16")
                .hasMessageContaining("batch.sequences: expected 6 sequences per step")
                .hasMessageContaining("run.steps: expected tokens for 21 steps")
                .hasMessageContaining("I64 [20, 4, 17]");
    }

    @Test
    void namesTheFirstTokenOutsideTheVocabulary() {
        assertThatThrownBy(() -> TrainingData.open(golden.shape(60, 16, 4, 20).spec()))
                .isInstanceOf(DataException.class)
                .hasMessageMatching(
                        "(?s)model.vocabulary: expected tokens from 0 to 59,"
                                + " got .*tokens\\[\\d+, \\d, \\d+] = 6[0-3];.*");
    }

    @Test
    void refusesAFileOfOtherTensors() {
        Path weights = GOLDEN.resolveSibling("tied.init.safetensors");

        assertThatThrownBy(
                        () -> TrainingData.open(Specs.of(weights).format(DataFormat.TOKENS).spec()))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("no tensor 'tokens'");
    }

    @Test
    void refusesAStepBeyondTheFile() {
        TrainingData data = TrainingData.open(golden.spec());

        assertThatThrownBy(() -> data.read(StepKind.TRAIN, 21, 0, new int[34]))
                .hasMessageContaining("expected a step from 1 to 20, got 21");
    }
}
