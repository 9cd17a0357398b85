package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.stage.GptStageFactory;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The bytes of moments in 8 bits. */
class CodedMomentsMemoryTest {
    private static final int WIDTH = 256;

    @Test
    void twoBytesAndTheirScalesAreHeldAsPlanned() {
        ModelShape shape = ModelShape.gpt2(37, 16, WIDTH, 2, 4, true);
        GptSettings floats = TinyRuns.settings(shape, 1, TinyRuns.batch(List.of(16)));
        GptSettings settings = TinyRuns.coded(floats);
        GptStageFactory factory =
                new GptStageFactory(
                        settings,
                        List.of(StageBudget.everything(settings.batch())),
                        TinyRuns.tokens(37),
                        ParameterSource.none());
        long tables = (37L + 16) * WIDTH;
        long trained = factory.trained(0, RankPlace.single(0));

        try (var pipeline = TinyRuns.pipeline(settings);
                var plain = TinyRuns.pipeline(floats)) {
            StageMemory held = pipeline.stages().getFirst().memory();
            StageMemory before = plain.stages().getFirst().memory();

            long coded = factory.coded(0, RankPlace.single(0));
            assertThat(coded).isEqualTo(trained - tables);
            assertThat(held.optimizer())
                    .isEqualTo(factory.predictedMemory(List.of(0), RankPlace.single(0)).optimizer())
                    .isEqualTo(8 * tables + 2 * (coded + coded / 256 * 4));
            assertThat(before.optimizer()).isEqualTo(8 * trained);
            assertThat(held.parameters()).isEqualTo(before.parameters());
            long byFormula =
                    factory.formula(trained, trained, 0, 0, coded).stream()
                            .filter(use -> use.use().equals(MemoryUse.OPTIMIZER))
                            .mapToLong(MemoryUse::peakBytes)
                            .sum();
            assertThat(byFormula).isCloseTo(held.optimizer(), withinPercentage(0.1));
        }
    }
}
