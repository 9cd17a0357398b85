package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.DamagedCheckpointException;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * The stages of a run, as it begins or as one of its own checkpoints has them.
 *
 * @param checkpoints folder of the run's checkpoints
 */
record RunStages(GptStageFactory stages, Path checkpoints) implements StageProgramFactory {
    @Override
    public StageProgram create(int stage, RankPlace place, Device device) {
        return stages.create(stage, place, device);
    }

    @Override
    public List<GptStage> createAll(List<Integer> built, RankPlace place, Device device) {
        return stages.createAll(built, place, device);
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        return stages.mirror(stage, place, device);
    }

    @Override
    public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
        return stages.fill(name, piece, destination);
    }

    /**
     * Where the run began, what it does not train has its first values; every checkpoint has them
     * too, should those be gone with which it began.
     */
    @Override
    public StageBuilder blank() {
        return new Blank(stages, checkpoints);
    }

    @Override
    public StageBuilder startingAt(long step) {
        return new Restored(stages, step, CheckpointFolders.of(checkpoints, step));
    }

    private record Blank(GptStageFactory stages, Path checkpoints) implements StageBuilder {
        @Override
        public StageProgram create(int stage, RankPlace place, Device device) {
            return reading(from -> from.create(stage, place, device));
        }

        @Override
        public List<GptStage> createAll(List<Integer> built, RankPlace place, Device device) {
            return reading(from -> from.createAll(built, place, device));
        }

        @Override
        public StageMirror mirror(int stage, RankPlace place, Device device) {
            return stages.blank().mirror(stage, place, device); // of what is trained alone
        }

        private <T> T reading(Function<GptStageFactory, T> build) {
            try {
                return build.apply(stages.blank());
            } catch (StoredFileException e) {
                Optional<SavedCheckpoint> saved = CheckpointFolders.latest(checkpoints, _ -> {});
                try (CheckpointReader reader = saved.orElseThrow(() -> e).read()) {
                    return build.apply(stages.startingFrom(reader::fill).blank());
                }
            }
        }
    }

    /** A checkpoint's files are open while a stage is built, no longer. */
    private record Restored(GptStageFactory stages, long step, Path checkpoint)
            implements StageBuilder {
        @Override
        public StageProgram create(int stage, RankPlace place, Device device) {
            return reading(from -> from.create(stage, place, device));
        }

        @Override
        public List<GptStage> createAll(List<Integer> built, RankPlace place, Device device) {
            return reading(from -> from.createAll(built, place, device));
        }

        @Override
        public StageMirror mirror(int stage, RankPlace place, Device device) {
            return reading(from -> from.mirror(stage, place, device));
        }

        @Override
        public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
            return reading(from -> from.fill(name, piece, destination));
        }

        private <T> T reading(Function<GptStageFactory, T> build) {
            try (CheckpointReader reader = SavedCheckpoint.open(checkpoint).readVerified()) {
                return build.apply(stages.startingAfter(step, reader::fill));
            } catch (StoredFileException e) {
                throw e.isDamage()
                        ? new DamagedCheckpointException(String.valueOf(e.getMessage()), e)
                        : e;
            }
        }
    }
}
