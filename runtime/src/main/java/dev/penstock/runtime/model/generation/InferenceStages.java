package dev.penstock.runtime.model.generation;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;

/**
 * Builds stages of inference. Safe to use from any thread, as far as the source is.
 *
 * @param held how weights are held
 * @param texts of these, stages that are neither the first nor the last read sizes alone if they
 *     are {@code apart}
 * @param source the source of all parameters
 * @param apart whether stages may be in several processes, the first and the last in one: what a
 *     unit feeds travels with its rows
 */
public record InferenceStages(
        ModelShape shape,
        StagePartition partition,
        Precision precision,
        HeldWeights held,
        TextFeed texts,
        ParameterSource source,
        boolean apart)
        implements StageProgramFactory {
    @Override
    public InferenceStage create(int stage, RankPlace place, Device device) {
        return InferenceStage.build(
                shape, partition.role(stage), precision, held, device, texts, source, apart);
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        throw new UnsupportedOperationException("inference stages have no mirrors");
    }

    @Override
    public StageBuilder blank() {
        return this;
    }

    @Override
    public StageBuilder startingAt(long step) {
        return this;
    }
}
