package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Device;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Mirrors in a pipeline of real actors: they follow every step and change none. */
@Timeout(120)
class MirroredPipelineTest {
    @ParameterizedTest
    @CsvSource({
        "1f1b,2,4,1,false",
        "1f1b,3,2,1,true",
        "gpipe,4,5,1,true",
        "terapipe,2,2,3,true",
        "seq1f1b,4,3,2,false"
    })
    void everyMirrorIsEqualToItsStageAfterTheRun(
            String kind, int stages, int microBatches, int slices, boolean tied) throws Exception {
        var settings = new ChainStage.Settings(stages, microBatches, slices, tied, 0.01);
        var plain = new ChainPipeline(kind, settings);
        var mirrored = new ChainPipeline(kind, settings);
        plain.runSteps = mirrored.runSteps = new RunSteps(0, 6, 0.5, 2, 2, 0);
        mirrored.mirrors = true;
        var kept = new Kept(settings);
        mirrored.programs = kept;

        plain.run();
        RunOutcome outcome = mirrored.run();

        assertThat(outcome).isEqualTo(new RunOutcome.Completed(6));
        assertThat(mirrored.losses()).isEqualTo(plain.losses());
        assertThat(mirrored.evaluations).isEqualTo(plain.evaluations);
        assertThat(kept.mirrors).hasSize(stages).isEqualTo(kept.stages);
    }

    @Test
    void aRanksMirrorCoversAllItsStages() throws Exception {
        Schedule order =
                ScheduleText.parse(
                        """
                        ranks: 2
                        chunks: 2
                        placement: 0 1 1 0
                        micro-batches: 2
                        rank 0: 0F0 0F1 3F0 3I0 3W0 3F1 3B1 0I0 0B1 0W0
                        rank 1: 1F0 2F0 1F1 (2F1;2B0)OVERLAP_F_B 1I0 2I1 1B1 1W0 2W1
                        """);
        var settings = new ChainStage.Settings(4, 2, 1, true, 0.01);
        var pipeline = new ChainPipeline(order, settings);
        pipeline.mirrors = true;
        var kept = new Kept(settings);
        pipeline.programs = kept;

        pipeline.run();

        assertThat(kept.mirrors).hasSize(4).isEqualTo(kept.stages);
    }

    /** Notes the weights of stages and mirrors when they are closed. */
    private static final class Kept implements ChainStages {
        private final ChainStage.Settings settings;
        private final Map<Integer, Float> stages = new ConcurrentHashMap<>();
        private final Map<Integer, Float> mirrors = new ConcurrentHashMap<>();

        Kept(ChainStage.Settings settings) {
            this.settings = settings;
        }

        @Override
        public StageProgram create(int stage, RankPlace place, Device device) {
            return new ForwardingStage(new ChainStage(settings, stage, device)) {
                @Override
                public void close() {
                    stages.put(stage, weight(state().getFirst()));
                    super.close();
                }
            };
        }

        @Override
        public StageMirror mirror(int stage, RankPlace place, Device device) {
            var copy = new ChainStage(settings, stage, device);
            return new StageMirror() {
                @Override
                public int stage() {
                    return stage;
                }

                @Override
                public TrainedState trained() {
                    return copy.trained();
                }

                @Override
                public void update(long step, double clipFactor) {
                    copy.update(step, clipFactor);
                }

                @Override
                public void close() {
                    mirrors.put(stage, weight(copy.state().getFirst()));
                    copy.close();
                }
            };
        }

        private static float weight(NamedTensor tensor) {
            return ChainStage.get(tensor.tensor());
        }
    }
}
