package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.safetensors.Sha256;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ManifestTest {
    @TempDir Path folder;

    /**
     * 16 ranks of 8 stages each, 4 tensor shards, 48 replicas that divide the optimizer's state.
     */
    @Test
    void whatThousandsOfRanksWroteCanBeReadAgain() throws IOException {
        List<ShardFile> files =
                IntStream.range(0, 128 * 4 * 48)
                        .mapToObj(
                                i ->
                                        new ShardFile(
                                                i / 192,
                                                StageFile.name(
                                                                i / 192,
                                                                new RankPlace(
                                                                        i / 192 % 16,
                                                                        i % 4,
                                                                        0,
                                                                        i / 4 % 48))
                                                        + ".safetensors",
                                                123_456_789_012L,
                                                Sha256.of("" + i)))
                        .toList();
        var manifest =
                new Manifest(
                        Manifest.FORMAT_VERSION,
                        100,
                        42,
                        "0123abcd",
                        TinyRun.MODEL,
                        Sha256.of("config"),
                        files,
                        "0x1.0p16 1 2 3 0");

        Files.writeString(folder.resolve(Manifest.FILE), manifest.toJson());

        assertThat(Manifest.read(folder)).isEqualTo(manifest);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../x.safetensors",
                "/etc/x.safetensors",
                "a/b.safetensors",
                "..",
                "",
                ".hidden.safetensors",
                "manifest.json",
                "x\u0000.safetensors",
                "x\n.safetensors",
            })
    void aFileOutsideOfTheCheckpointIsRefused(String name) throws IOException {
        Files.writeString(
                folder.resolve(Manifest.FILE), of(new ShardFile(0, name, 7, "0")).toJson());

        assertThatThrownBy(() -> SavedCheckpoint.open(folder))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("manifest.json: expected files of this folder")
                .hasMessageNotContaining("\u0000");
    }

    @Test
    void aFileTwiceOrOfNegativeSizeIsRefused() throws IOException {
        ShardFile good = new ShardFile(0, "stage-0.safetensors", 7, "0");
        for (Manifest bad :
                List.of(
                        of(good, good),
                        of(new ShardFile(0, "stage-0.safetensors", -1, "0")),
                        of(new ShardFile(-1, "stage-0.safetensors", 1, "0")))) {
            Files.writeString(folder.resolve(Manifest.FILE), bad.toJson());

            assertThatThrownBy(() -> SavedCheckpoint.open(folder))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("stage-0.safetensors, each once");
        }
    }

    private static Manifest of(ShardFile... files) {
        return new Manifest(
                Manifest.FORMAT_VERSION,
                100,
                42,
                "0123abcd",
                TinyRun.MODEL,
                Sha256.of("config"),
                List.of(files),
                "");
    }

    /** Else a run would try to read it again, as after an error of the disk, instead of another. */
    @Test
    void everyFlippedBitIsDamageOrChangesNothing() throws IOException {
        var manifest =
                new Manifest(
                        Manifest.FORMAT_VERSION,
                        100,
                        42,
                        "0123abcd",
                        TinyRun.MODEL,
                        Sha256.of("config"),
                        List.of(new ShardFile(0, "stage-0.safetensors", 7, Sha256.of("0"))),
                        "");
        byte[] whole = manifest.toJson().getBytes(StandardCharsets.UTF_8);

        for (int bit = 0; bit < 8 * whole.length; bit++) {
            byte[] flipped = whole.clone();
            flipped[bit / 8] ^= (byte) (1 << bit % 8);
            Files.write(folder.resolve(Manifest.FILE), flipped);

            Manifest read = null;
            try {
                read = Manifest.read(folder);
            } catch (StoredFileException e) {
                assertThat(e.isDamage()).as("bit %d: %s", bit, e.getMessage()).isTrue();
            }
            assertThat(read).as("bit %d", bit).isIn(null, manifest);
        }
    }
}
