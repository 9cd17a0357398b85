package dev.penstock.actors.rank;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Kernels;
import java.util.List;

/**
 * Builds mirrors of stages together with those of what the stages' ends of links keep.
 *
 * @param stages builds the stages themselves and their mirrors
 * @param own a stage of the rank that holds the mirrors
 */
record MirrorsWithLinks(StageBuilder stages, RunPlan plan, StageProgram own)
        implements StageBuilder {
    @Override
    public StageProgram create(int stage, RankPlace place, Device device) {
        return stages.create(stage, place, device);
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        StageMirror mirror = stages.mirror(stage, place, device);
        try {
            CodingState links =
                    CodingState.build(
                            place,
                            plan,
                            List.of(CodingState.OfStage.of(mirror, own)),
                            "mirror of links of stage " + stage,
                            device,
                            stages);
            return new Both(mirror, links, device.kernels());
        } catch (RuntimeException e) {
            mirror.close();
            throw e;
        }
    }

    private record Both(StageMirror mirror, CodingState links, Kernels kernels)
            implements StageMirror {
        @Override
        public int stage() {
            return mirror.stage();
        }

        @Override
        public int firstLayer() {
            return mirror.firstLayer();
        }

        @Override
        public int layers() {
            return mirror.layers();
        }

        @Override
        public TrainedState trained() {
            return links.with(stage(), mirror.trained());
        }

        @Override
        public void skipped(long steps) {
            mirror.skipped(steps);
        }

        @Override
        public void update(long step, double clipFactor) {
            mirror.update(step, clipFactor);
            links.deltas().replaced(); // what came says where the step's rows belong
            links.commit(kernels);
        }

        @Override
        public void close() {
            links.close();
            mirror.close();
        }
    }
}
