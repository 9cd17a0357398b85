package dev.penstock.runtime.launch;

import dev.penstock.runtime.config.run.DeviceSection;
import dev.penstock.runtime.config.run.OptimizerSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.TrainedWords;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.LogitsRoom;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.util.List;
import java.util.Optional;

/** The model that a configuration describes. */
public final class ConfiguredModel {
    private ConfiguredModel() {}

    static Tokenizer tokenizer(RunConfig config) {
        return Tokenizer.open(config.data().tokenizer().word());
    }

    /** Rows of the token embedding. */
    static int vocabulary(RunConfig config) {
        return config.model().vocabularyOr(config.data().tokenizer().vocabulary());
    }

    /** The model's shape as its checkpoints say it. */
    static ModelConfig modelConfig(RunConfig config) {
        ModelConfig model = config.model().config(config.data().tokenizer().vocabulary());
        return model.training(config.fineTune().tuning(model.family(), model.shape()));
    }

    /** What of the model is trained, in words; empty where all of it is. */
    static Optional<String> tuningWords(RunConfig config) {
        ModelConfig model = modelConfig(config);
        if (!TrainedWords.areNeeded(model)) {
            return Optional.empty();
        }
        return Optional.of(
                TrainedWords.of(
                        model,
                        config.fineTune()
                                .adapter()
                                .map(from -> List.of("begun with the adapter " + from))
                                .orElse(List.of())));
    }

    /** Shape, partition, batch and optimizer, for stages that run in this order. */
    static GptSettings settings(RunConfig config, ProvedSchedule schedule) {
        return settings(
                config,
                schedule,
                optimizer(config.optimizer(), config.run().steps()),
                config.run().seed());
    }

    /**
     * Same as {@link #settings} with an optimizer of no meaning: for what depends on sizes alone.
     */
    static GptSettings sizes(RunConfig config, ProvedSchedule schedule) {
        return settings(config, schedule, anyOptimizer().keeping(config.optimizer().state()), 0);
    }

    /** An optimizer of no meaning. */
    public static AdamWSettings anyOptimizer() {
        return new AdamWSettings(LearningRate.constant(1), 0.9, 0.95, 1e-8, 0, false);
    }

    private static GptSettings settings(
            RunConfig config, ProvedSchedule schedule, AdamWSettings optimizer, long seed) {
        var section = config.model();
        ModelShape shape = section.shape(config.data().tokenizer().vocabulary());
        int stageCount = schedule.training().shape().stages();
        FineTuning tuning =
                config.fineTune()
                        .tuning(Families.find(section.family()).orElseThrow(), shape)
                        .keeping(config.fineTune().kept());
        StagePartition partition = config.partition(new TrainedParts(shape, tuning), stageCount);
        var batch =
                new BatchShape(
                        config.batch().sequencesPerMicroBatch(),
                        schedule.training().shape().microBatches(),
                        schedule.sliceTokens(),
                        config.device().reductionBlock(),
                        logits(config.device()));
        var settings =
                new GptSettings(
                        shape,
                        partition,
                        batch,
                        precision(config.device()),
                        optimizer,
                        seed,
                        config.schedule().recompute().blocks(section.layers().count()),
                        config.grid(),
                        config.zero(),
                        config.parallel().sequence(),
                        tuning,
                        section.dropout(),
                        config.optimizer().gradientSum(),
                        config.parallel().outer());
        GptSettings placed = config.device().offload().map(settings::offloadingTo).orElse(settings);
        return schedule.training().shape().peers() > 1 ? placed.sharingBatch() : placed;
    }

    /**
     * By the settings alone, as tensor shards exchange data once per chunk of logits: all take the
     * same ones, whatever libraries their machines have.
     */
    private static LogitsRoom logits(DeviceSection section) {
        if (section.swap().isPresent()) {
            return LogitsRoom.LEAST;
        }
        boolean ownOrder = section.kind().isCuda() && section.gemm() != DeviceSection.Gemm.KERNELS;
        return ownOrder ? LogitsRoom.IN_ANY_ORDER : LogitsRoom.ON_GRID;
    }

    static Precision precision(DeviceSection section) {
        return switch (section.precision()) {
            case FLOAT32 -> Precision.FLOAT32;
            case BF16 -> section.kind().isCuda() ? Precision.BF16_KEPT : Precision.BF16;
            case FP16 -> Precision.FP16;
        };
    }

    private static AdamWSettings optimizer(OptimizerSection section, int steps) {
        return new AdamWSettings(
                section.rates(steps),
                section.beta1(),
                section.beta2(),
                section.epsilon(),
                section.weightDecay(),
                section.decayAll(),
                section.state());
    }
}
