package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.safetensors.Sha256;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

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
                        files);

        Files.writeString(folder.resolve(Manifest.FILE), manifest.toJson());

        assertThat(Manifest.read(folder)).isEqualTo(manifest);
    }
}
