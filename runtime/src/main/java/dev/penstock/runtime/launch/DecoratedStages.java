package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.Device;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.BiFunction;

/** Stages with somebody who looks on; mirrors as they are. */
record DecoratedStages(
        StageProgramFactory stages, BiFunction<StageProgram, RankPlace, StageProgram> decorator)
        implements StageProgramFactory {
    @Override
    public StageProgram create(int stage, RankPlace place, Device device) {
        return decorator.apply(stages.create(stage, place, device), place);
    }

    @Override
    public List<StageProgram> createAll(List<Integer> built, RankPlace place, Device device) {
        return decorated(stages.createAll(built, place, device), place, decorator);
    }

    private static List<StageProgram> decorated(
            List<? extends StageProgram> plain,
            RankPlace place,
            BiFunction<StageProgram, RankPlace, StageProgram> decorator) {
        return plain.stream().map(stage -> decorator.apply(stage, place)).toList();
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        return stages.mirror(stage, place, device);
    }

    @Override
    public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
        return stages.fill(name, piece, destination);
    }

    @Override
    public StageBuilder blank() {
        return new Decorated(stages.blank(), decorator);
    }

    @Override
    public StageBuilder startingAt(long step) {
        return new Decorated(stages.startingAt(step), decorator);
    }

    private record Decorated(
            StageBuilder stages, BiFunction<StageProgram, RankPlace, StageProgram> decorator)
            implements StageBuilder {
        @Override
        public StageProgram create(int stage, RankPlace place, Device device) {
            return decorator.apply(stages.create(stage, place, device), place);
        }

        @Override
        public List<StageProgram> createAll(List<Integer> built, RankPlace place, Device device) {
            return decorated(stages.createAll(built, place, device), place, decorator);
        }

        @Override
        public StageMirror mirror(int stage, RankPlace place, Device device) {
            return stages.mirror(stage, place, device);
        }

        @Override
        public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
            return stages.fill(name, piece, destination);
        }
    }
}
