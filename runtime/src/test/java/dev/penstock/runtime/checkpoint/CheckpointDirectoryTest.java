package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.fault.SaveFaults;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CheckpointDirectoryTest {
    @TempDir Path root;

    private final List<String> ignored = new ArrayList<>();

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5})
    void stateComesBackHoweverManyStagesSavedIt(int stages) {
        try (TinyRun run = new TinyRun(stages);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            run.save(directory, 7);
        }

        SavedCheckpoint saved = latest();
        assertThat(saved.path()).isEqualTo(root.resolve("step-000007"));
        assertThat(saved.step()).isEqualTo(7);
        assertThat(saved.manifest().seed()).isEqualTo(42);
        assertThat(saved.manifest().configHash()).isEqualTo("0123abcd");
        assertThat(saved.manifest().shards()).hasSize(stages);
        assertThat(ModelConfig.read(saved.path().resolve("config.json"))).isEqualTo(TinyRun.MODEL);
        try (CheckpointReader reader = saved.read()) {
            reader.requireState(TinyRun.MODEL);
            assertThat(reader.tensors()).hasSize(3 * TinyRun.MODEL.parameters().size());
            float[] moments = new float[8 * 24];
            boolean found =
                    reader.fill(
                            "optimizer.v.h.1.attn.c_attn.weight",
                            TensorPiece.all(List.of(8, 24)),
                            MemorySegment.ofArray(moments));
            assertThat(found).isTrue();
            for (int i = 0; i < moments.length; i++) {
                assertThat(moments[i])
                        .isEqualTo(TinyRun.element("optimizer.v.h.1.attn.c_attn.weight", 7, i));
            }
            assertThat(
                            reader.fill(
                                    "x",
                                    TensorPiece.all(List.of(1)),
                                    MemorySegment.ofArray(new float[1])))
                    .isFalse();
        }
        assertThat(ignored).isEmpty();
    }

    @Test
    void anAbandonedSetLeavesNothing() {
        try (TinyRun run = new TinyRun(1);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            run.save(directory, 7);
            directory.writeShard(8, 1, 1, RankPlace.single(1), List.of());

            directory.abandon(8, 1);
            directory.abandon(9, 1);
        }

        assertThat(root.toFile().list()).containsExactly("step-000007");
    }

    @Test
    void keepsTheRetainedNumberOfTheNewest() throws Exception {
        try (TinyRun run = new TinyRun(2);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            for (long step = 100; step <= 500; step += 100) {
                run.save(directory, step);
            }
        }

        assertThat(names()).containsExactly("step-000400", "step-000500");
        assertThat(latest().step()).isEqualTo(500);
    }

    @Test
    void keepsTheBestBesidesTheNewest() throws Exception {
        Map<Long, Double> losses = Map.of(200L, 2.5, 300L, 2.5, 400L, Double.NaN, 500L, 2.75);
        try (TinyRun run = new TinyRun(2);
                CheckpointDirectory directory =
                        new CheckpointDirectory(
                                root,
                                new CheckpointIdentity(TinyRun.MODEL, "0123abcd", 42),
                                new Retention(1, () -> losses),
                                SaveFaults.NONE)) {
            for (long step = 100; step <= 600; step += 100) {
                run.save(directory, step);
            }
        }

        assertThat(names()).containsExactly("step-000300", "step-000600");
        OldCheckpoints old = OldCheckpoints.in(root, losses, ignored::add).orElseThrow();
        assertThat(old.superfluous()).isEmpty();
        assertThat(OldCheckpoints.in(root, Map.of(), ignored::add).orElseThrow().superfluous())
                .containsExactly(root.resolve("step-000300"));
    }

    @Test
    void keepsAllWhileTheBestIsNotKnown() throws Exception {
        try (TinyRun run = new TinyRun(1);
                CheckpointDirectory directory =
                        new CheckpointDirectory(
                                root,
                                new CheckpointIdentity(TinyRun.MODEL, "0123abcd", 42),
                                new Retention(
                                        1,
                                        () -> {
                                            throw new UncheckedIOException(
                                                    new IOException("a bad sector"));
                                        }),
                                SaveFaults.NONE)) {
            run.save(directory, 100);
            run.save(directory, 200);
        }

        assertThat(names()).containsExactly("step-000100", "step-000200");
    }

    @Test
    void keepsTheOldWhenTheNewDoesNotVerify() throws Exception {
        try (TinyRun run = new TinyRun(1)) {
            try (CheckpointDirectory directory = TinyRun.directory(root, 1)) {
                run.save(directory, 100);
            }
            try (CheckpointDirectory directory = TinyRun.directory(root, 1)) {
                ShardFile written = run.writeShards(directory, 200).getFirst();
                String other = "0".repeat(64);

                directory.publish(
                        200, 1, List.of(new ShardFile(0, written.file(), written.bytes(), other)));
            }
        }

        assertThat(names()).containsExactly("step-000100", "step-000200");
        assertThat(latest().step()).isEqualTo(100);
        assertThat(ignored)
                .singleElement()
                .asString()
                .contains("step-000200/stage-0.safetensors", "damaged", "ignored");
    }

    @Test
    void replacesACheckpointOfTheSameStep() throws Exception {
        try (TinyRun run = new TinyRun(2);
                TinyRun other = new TinyRun(3);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            run.save(directory, 100);
            other.save(directory, 100);
        }

        assertThat(names()).containsExactly("step-000100");
        assertThat(latest().manifest().shards()).hasSize(3);
    }

    @Test
    void dropsFilesOfAnEarlierAttemptWithMoreStages() throws Exception {
        try (TinyRun three = new TinyRun(3);
                TinyRun two = new TinyRun(2);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            three.writeShards(directory, 100);
            two.save(directory, 100);
        }

        try (Stream<Path> files = Files.list(root.resolve("step-000100"))) {
            assertThat(files.map(file -> file.getFileName().toString()).sorted())
                    .containsExactly(
                            "config.json",
                            "manifest.json",
                            "stage-0.safetensors",
                            "stage-1.safetensors");
        }
    }

    @Test
    void showsBothShapesOfEverythingThatDoesNotFit() {
        try (TinyRun run = new TinyRun(2);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            run.save(directory, 1);
        }
        ModelConfig deeper = ModelConfig.gpt2(12, 6, 8, 4, 2, true);

        try (CheckpointReader reader = latest().read()) {
            assertThatThrownBy(() -> reader.requireParameters(deeper))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("step-000001: does not match the model of this run")
                    .hasMessageContaining("wte.weight: expected [12, 8], got [11, 8]")
                    .hasMessageContaining("h.3.mlp.c_fc.weight: expected [8, 32], got nothing");
            assertThatThrownBy(
                            () -> reader.requireParameters(ModelConfig.gpt2(11, 6, 8, 2, 2, true)))
                    .hasMessageContaining("h.2.ln_1.bias: expected none, got [8]");
            assertThatThrownBy(
                            () ->
                                    reader.fill(
                                            "wpe.weight",
                                            TensorPiece.all(List.of(7, 8)),
                                            MemorySegment.ofArray(new float[56])))
                    .hasMessageContaining(
                            "wpe.weight: expected floating-point [7, 8], got F32 [6, 8]");
        }
    }

    @Test
    void refusesToPublishWhatIsNotThere() throws Exception {
        try (TinyRun run = new TinyRun(2);
                CheckpointDirectory directory = TinyRun.directory(root, 2)) {
            run.save(directory, 100);
            List<ShardFile> shards = run.writeShards(directory, 200);
            Files.delete(root.resolve("step-000200.epoch-1.incomplete/stage-1.safetensors"));

            assertThatThrownBy(() -> directory.publish(200, 1, shards))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("stage-1.safetensors");
        }
        assertThat(names()).containsExactly("step-000100");
    }

    @Test
    void aPathMayNameARunItsCheckpointsOrOneOfThem() throws Exception {
        Path checkpoints = root.resolve("checkpoints");
        try (TinyRun run = new TinyRun(1);
                CheckpointDirectory directory = TinyRun.directory(checkpoints, 2)) {
            run.save(directory, 100);
            run.save(directory, 200);
        }

        assertThat(CheckpointFolders.find(root, ignored::add).step()).isEqualTo(200);
        assertThat(CheckpointFolders.find(checkpoints, ignored::add).step()).isEqualTo(200);
        Path first = checkpoints.resolve("step-000100");
        assertThat(CheckpointFolders.find(first, ignored::add).step()).isEqualTo(100);

        Files.writeString(first.resolve("stage-0.safetensors"), "x");
        assertThatThrownBy(() -> CheckpointFolders.find(first, ignored::add))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("step-000100/stage-0.safetensors");
        assertThatThrownBy(() -> CheckpointFolders.find(root.resolve("x"), ignored::add))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("no checkpoint here");
    }

    @Test
    void aRunWithoutCheckpointsHasNone() {
        assertThat(CheckpointFolders.latest(root.resolve("none"), ignored::add)).isEmpty();
        assertThatThrownBy(() -> SavedCheckpoint.open(root.resolve("step-000001")))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("not the folder of a checkpoint");
    }

    private SavedCheckpoint latest() {
        return CheckpointFolders.latest(root, ignored::add).orElseThrow();
    }

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(root)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }
}
