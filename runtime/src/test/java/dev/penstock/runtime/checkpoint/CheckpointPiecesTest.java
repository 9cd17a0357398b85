package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.actors.spi.TensorPiece.Strip;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CheckpointPiecesTest {
    private static final List<Integer> QUERY_KEY_VALUE = List.of(8, 24);
    private static final String NAME = "optimizer.m.h.1.attn.c_attn.weight";

    @TempDir Path root;

    @ParameterizedTest
    @CsvSource({"1,1,1", "1,2,1", "1,1,5", "2,2,3", "3,4,1"})
    void anyPieceComesOutOfAnyPieces(int stages, int shards, int replicas) {
        SavedCheckpoint saved = save(new TinyRun(stages, shards, replicas));
        List<TensorPiece> wanted =
                List.of(
                        TensorPiece.all(QUERY_KEY_VALUE),
                        TensorPiece.all(QUERY_KEY_VALUE).stretch(5, 77),
                        TensorPiece.strips(
                                        QUERY_KEY_VALUE,
                                        List.of(new Strip(2, 5, 3, 4), new Strip(2, 5, 11, 1)))
                                .stretch(3, 20),
                        TensorPiece.all(QUERY_KEY_VALUE).stretch(9, 9));

        assertThat(saved.verify()).isEmpty();
        try (CheckpointReader reader = saved.read()) {
            reader.requireState(TinyRun.MODEL);
            assertThat(reader.tensors()).hasSize(3 * TinyRun.MODEL.parameters().size());
            for (TensorPiece piece : wanted) {
                float[] given = new float[(int) piece.elements()];
                reader.fill(NAME, piece, MemorySegment.ofArray(given));
                assertThat(given).isEqualTo(expected(piece));
            }
        }
    }

    @Test
    void theFilesSayWhoseTheyAre() {
        SavedCheckpoint saved = save(new TinyRun(2, 2, 2));

        assertThat(saved.manifest().shards())
                .extracting(ShardFile::file)
                .containsExactly(
                        "stage-0.safetensors",
                        "stage-0-data-1.safetensors",
                        "stage-0-tensor-1.safetensors",
                        "stage-0-tensor-1-data-1.safetensors",
                        "stage-1.safetensors",
                        "stage-1-data-1.safetensors",
                        "stage-1-tensor-1.safetensors",
                        "stage-1-tensor-1-data-1.safetensors");
    }

    /** Byte for byte what was written before there were pieces. */
    @Test
    void wholeTensorsHaveNoNote() {
        SavedCheckpoint saved = save(new TinyRun(2));

        for (ShardFile shard : saved.manifest().shards()) {
            try (SafetensorsFile file = SafetensorsFile.open(saved.path().resolve(shard.file()))) {
                assertThat(file.metadata())
                        .isEqualTo(
                                Map.of(
                                        "format",
                                        "pt",
                                        "penstock",
                                        "step 7, stage " + shard.stage()));
            }
        }
    }

    @Test
    void holesAreNamed() {
        try (TinyRun run = new TinyRun(1, 2, 1);
                CheckpointDirectory directory = TinyRun.directory(root, 1)) {
            List<ShardFile> files = run.writeShards(directory, 7);

            directory.publish(7, 1, files.subList(0, 1));
        }

        assertThat(CheckpointFolders.latest(root, _ -> {})).isEmpty();
        assertThat(SavedCheckpoint.open(CheckpointFolders.of(root, 7)).verify())
                .singleElement()
                .asString()
                .contains(
                        "step-000007",
                        "h.1.attn.c_attn.weight [8, 24]: elements 6 to 11 are in no file",
                        "more tensors");
    }

    @Test
    void overlapsAreNamed() {
        try (TinyRun run = new TinyRun(1, 1, 2);
                CheckpointDirectory directory = TinyRun.directory(root, 1)) {
            List<ShardFile> files = new ArrayList<>(run.writeShards(directory, 7));
            var other = new RankPlace(0, 0, 0, 2);
            files.add(
                    directory.writeShard(7, 1, 0, other, run.state(7, new RankPlace(0, 0, 0, 1))));

            directory.publish(7, 1, files);
        }

        assertThat(SavedCheckpoint.open(CheckpointFolders.of(root, 7)).verify())
                .singleElement()
                .asString()
                .contains(
                        "h.0.ln_1.bias [8]: elements 4 to 7 are in stage-0-data-1.safetensors"
                                + " and in stage-0-data-2.safetensors");
    }

    @Test
    void aTensorThatNobodyWroteIsNamed() {
        try (TinyRun run = new TinyRun(2);
                CheckpointDirectory directory = TinyRun.directory(root, 1)) {
            directory.publish(7, 1, run.writeShards(directory, 7).subList(0, 1));
        }

        assertThat(SavedCheckpoint.open(CheckpointFolders.of(root, 7)).verify())
                .singleElement()
                .asString()
                .contains("wpe.weight: expected [6, 8], got nothing");
    }

    @Test
    void whatANoteSaysIsNotBelieved() {
        assertNote("{\"version\":2}", "expected version 1 of the note on pieces, got 2");
        assertNote("{\"version\":1", "not JSON");
        assertNote(note("[8]", "[[0,1,0,8]]", "[0,9]"), "elements 0 to 9");
        assertNote(note("[8]", "[[0,1,1,8]]", "[0,4]"), "not a piece of a tensor");
        assertNote(note("[8]", "[[0,2,0,4]]", "[0,4]"), "not a piece of a tensor");
        assertNote(note("[8]", "[]", "[0,4]"), "not a piece of a tensor");
        assertNote(note("[8]", "[[0,1,0,-8]]", "[0,4]"), "not a piece of a tensor");
        assertNote(note("[9999999999]", "[[0,1,0,8]]", "[0,4]"), "damaged");
        assertNote(note("[8]", "[[0,1,0,8]]", "[0,5]"), "expected 5 elements of F32, got F32 [4]");
    }

    /** Each would be walked for hours, or fill the memory. */
    @Test
    void absurdPiecesAreRefusedWithFileAndTensorBeforeTheyAreWalked() {
        String most = "2147483647";
        String column = "[[0,%s,0,1]]".formatted(most);
        String nothing =
                "[" + "[0,%s,0,0],".formatted(most).repeat(999) + "[0,%s,0,1]]".formatted(most);
        String far = "[1152921504606846976,1152921504606846980]";

        for (String[] each :
                new String[][] {
                    {"[%s,%s,%s]".formatted(most, most, most), "[[0,4,0,1]]", "[0,4]"},
                    {"[%s,%s]".formatted(most, most), nothing, "[0,4]"},
                    {"[%s,1]".formatted(most), column, "[0,2147483647]"},
                    {"[%s,1]".formatted(most), column, far},
                    {"[4,4]", "[[0,4,0,4],[0,4,0,4]]", "[0,4]"},
                    {"[4,4]", "[[0,4,0,2],[0,3,2,2]]", "[0,4]"},
                    {"[4,4]", "[[0,2147483647,0,4]]", "[0,4]"},
                    {"[4,4]", "[[2147483647,1,0,4]]", "[0,4]"},
                    {"[4,4]", "[[0,4,2147483647,4]]", "[0,4]"},
                    {"[8]", "[[0,1,0,8]]", "[4,0]"},
                }) {
            assertNote(note(each[0], each[1], each[2]), "noted.safetensors: damaged: ");
            assertNote(note(each[0], each[1], each[2]), "penstock.pieces: x: ");
        }
    }

    /** Four elements near the end of a tensor of two thousand million rows. */
    @Test
    void aStretchFarFromTheBeginningIsFoundWithoutWalkingThere() {
        assertNote(
                note("[2147483647,4]", "[[0,2147483647,0,4]]", "[8589934580,8589934584]"),
                "x [2147483647, 4]: elements 0 to 8589934579 are in no file");
    }

    @Test
    void aShapeWithoutElementsThatNoTensorHasIsRefused() throws IOException {
        Path file = root.resolve("absurd.safetensors");
        SafetensorsWriter.write(
                file,
                Map.of(),
                List.of(
                        new StoredTensor(
                                "x",
                                StoredType.F32,
                                List.of(Integer.MAX_VALUE, 2, 0),
                                MemorySegment.ofArray(new float[0]))));

        assertThatThrownBy(() -> CheckpointReader.open(root, List.of(file)))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("absurd.safetensors: x: no tensor has the shape");
    }

    private static String note(String whole, String strips, String elements) {
        return "{\"version\":1,\"tensors\":{\"x\":{\"whole\":%s,\"strips\":%s,\"elements\":%s}}}"
                .formatted(whole, strips, elements);
    }

    private void assertNote(String note, String message) {
        Path file = root.resolve("noted.safetensors");
        try {
            Files.deleteIfExists(file);
            SafetensorsWriter.write(
                    file,
                    Map.of(PieceNote.KEY, note),
                    List.of(StoredTensor.ofFloats("x", List.of(4), new float[4])));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        assertThatThrownBy(() -> CheckpointReader.open(root, List.of(file)))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(message);
    }

    private SavedCheckpoint save(TinyRun run) {
        try (run;
                CheckpointDirectory directory = TinyRun.directory(root, 1)) {
            run.save(directory, 7);
        }
        return CheckpointFolders.latest(root, _ -> {}).orElseThrow();
    }

    private static float[] expected(TensorPiece piece) {
        float[] elements = new float[(int) piece.elements()];
        piece.walk(
                (inWhole, inPiece, count) -> {
                    for (int i = 0; i < count; i++) {
                        elements[(int) inPiece + i] = TinyRun.element(NAME, 7, (int) inWhole + i);
                    }
                });
        return elements;
    }
}
