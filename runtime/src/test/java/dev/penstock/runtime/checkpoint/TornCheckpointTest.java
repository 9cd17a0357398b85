package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.TensorFacts;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What a crash or a bad disk can leave behind: the previous checkpoint is found, the cause named.
 */
class TornCheckpointTest {
    @TempDir Path root;

    private final List<String> ignored = new ArrayList<>();
    private final TinyRun run = new TinyRun(2);

    @BeforeEach
    void aGoodCheckpointOfStep100() {
        try (CheckpointDirectory directory = TinyRun.directory(root, 5)) {
            run.save(directory, 100);
        }
    }

    @AfterEach
    void freeTheModel() {
        run.close();
    }

    @Test
    void aSetWithoutAllItsShardsIsIgnored() {
        try (CheckpointDirectory directory = TinyRun.directory(root, 5)) {
            directory.writeShard(200, 1, 0, RankPlace.single(0), run.state(200, 0));
        }

        expectStep100("step-000200.epoch-1.incomplete: ignored, because it was never finished");
    }

    @Test
    void aSetThatWasNotRenamedIsIgnored() throws Exception {
        save(200);
        Files.move(root.resolve("step-000200"), root.resolve("step-000200.epoch-1.incomplete"));

        expectStep100("step-000200.epoch-1.incomplete: ignored, because it was never finished");
    }

    @Test
    void aSetWithoutItsManifestIsIgnored() throws Exception {
        save(200);
        Files.delete(root.resolve("step-000200/manifest.json"));

        expectStep100("step-000200/manifest.json");
    }

    @Test
    void aSetWithoutAShardIsIgnored() throws Exception {
        save(200);
        Files.delete(root.resolve("step-000200/stage-1.safetensors"));

        expectStep100("step-000200/stage-1.safetensors");
    }

    @Test
    void aSetThatWasBeingReplacedIsFoundAgain() throws Exception {
        save(200);
        Files.move(root.resolve("step-000200"), root.resolve("step-000200.replaced"));

        assertThat(CheckpointFolders.latest(root, ignored::add).orElseThrow().step())
                .isEqualTo(200);
    }

    /** Its ranks open it in processes of their own, after the folder has been swept. */
    @Test
    void aRunContinuesFromASetThatWasBeingReplacedAndItStaysWhereItWasFound() throws Exception {
        save(200);
        Path run = root.resolve("run");
        Path checkpoints = Files.createDirectories(run.resolve(CheckpointFolders.FOLDER));
        Files.move(root.resolve("step-000200"), checkpoints.resolve("step-000200.replaced"));

        Path found = CheckpointFolders.newestOf(run, ignored::add).orElseThrow().path();
        try (CheckpointDirectory directory = TinyRun.directory(checkpoints, 5)) {
            directory.sweep();
        }

        assertThat(found).isDirectory();
        assertThat(CheckpointFolders.newestComplete(run)).hasValue(200);
    }

    @Test
    void sweepingRemovesTheUnfinishedAndKeepsTheRest() throws Exception {
        save(200);
        Files.move(root.resolve("step-000200"), root.resolve("step-000200.replaced"));
        Files.createDirectories(root.resolve("step-000300.incomplete"));
        Files.createDirectories(root.resolve("step-000050.removed"));
        Files.createDirectories(root.resolve("notes"));
        try (CheckpointDirectory directory = TinyRun.directory(root, 5)) {
            directory.sweep();
        }

        assertThat(root.toFile().list())
                .as("the set that was being replaced has its name back")
                .containsExactlyInAnyOrder("step-000100", "step-000200", "notes");
    }

    @Test
    void whoeverReadsADamagedShardIsToldAndTheOthersAreNot() throws Exception {
        save(200);
        Path damaged = root.resolve("step-000200/stage-1.safetensors");
        byte[] bytes = Files.readAllBytes(damaged);
        bytes[bytes.length - 2] ^= 1;
        Files.write(damaged, bytes);

        try (CheckpointReader reader =
                SavedCheckpoint.open(root.resolve("step-000200")).readVerified()) {
            for (TensorFacts tensor : reader.tensors()) {
                boolean inDamaged =
                        reader.find(tensor.name()).orElseThrow() instanceof SavedTensor saved
                                && saved.pieces().getFirst().file().equals(damaged);
                ThrowingCallable copy =
                        () -> reader.fill(tensor.name(), TensorPiece.all(tensor.shape()), room());
                if (inDamaged) {
                    assertThatThrownBy(copy)
                            .isInstanceOf(StoredFileException.class)
                            .hasMessageContaining(damaged + ": damaged: expected SHA-256");
                } else {
                    assertThatCode(copy).doesNotThrowAnyException();
                }
            }
        }
        assertThat(CheckpointFolders.newestBefore(root, 200)).hasValue(100);
        assertThat(CheckpointFolders.newestBefore(root, 100)).isEmpty();
    }

    private static MemorySegment room() {
        return MemorySegment.ofArray(new float[1_000]);
    }

    @Test
    void everyTruncationOfEveryFileIsFound() throws Exception {
        save(200);
        for (Path file : files(200)) {
            byte[] whole = Files.readAllBytes(file);
            for (int part = 0; part < 8; part++) {
                Files.write(file, Arrays.copyOf(whole, whole.length * part / 8));

                expectStep100(root.relativize(file).toString());
            }
            Files.write(file, whole);
        }
        assertThat(CheckpointFolders.latest(root, ignored::add).orElseThrow().step())
                .isEqualTo(200);
    }

    @Test
    void bitFlipsInEveryRegionOfEveryFileAreFound() throws Exception {
        save(200);
        long seed = 11;
        Random random = new Random(seed);
        for (Path file : files(200)) {
            byte[] whole = Files.readAllBytes(file);
            int flips = 60;
            for (int region = 0; region < flips; region++) {
                byte[] damaged = whole.clone();
                int at = (int) ((region + random.nextDouble()) * whole.length / flips);
                if (Character.isWhitespace(damaged[at]) && !file.toString().endsWith("tensors")) {
                    continue; // layout of a text is not content
                }
                damaged[at] ^= (byte) (1 << random.nextInt(8));
                Files.write(file, damaged);

                expectStep100(root.relativize(file).toString());
            }
            Files.write(file, whole);
        }
    }

    @Test
    void openingADamagedCheckpointNeverFailsInAnotherWay() throws Exception {
        save(200);
        Random random = new Random(5);
        Path manifest = root.resolve("step-000200/manifest.json");
        byte[] whole = Files.readAllBytes(manifest);
        for (int trial = 0; trial < 300; trial++) {
            byte[] damaged = whole.clone();
            for (int i = 0; i < 3; i++) {
                damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
            }
            Files.write(manifest, damaged);
            try {
                SavedCheckpoint.open(root.resolve("step-000200"));
            } catch (StoredFileException e) {
                assertThat(e).hasMessageContaining("manifest.json");
            }
        }
    }

    private void save(long step) {
        try (CheckpointDirectory directory = TinyRun.directory(root, 5)) {
            run.save(directory, step);
        }
    }

    private List<Path> files(long step) {
        SavedCheckpoint saved = SavedCheckpoint.open(CheckpointFolders.of(root, step));
        List<Path> files = new ArrayList<>();
        for (ShardFile shard : saved.manifest().shards()) {
            files.add(saved.path().resolve(shard.file()));
        }
        files.add(saved.path().resolve("config.json"));
        files.add(saved.path().resolve("manifest.json"));
        return files;
    }

    private void expectStep100(String named) {
        ignored.clear();
        SavedCheckpoint found = CheckpointFolders.latest(root, ignored::add).orElseThrow();
        assertThat(found.step()).as(named).isEqualTo(100);
        assertThat(ignored).singleElement().asString().contains(named).contains("ignored");
    }
}
