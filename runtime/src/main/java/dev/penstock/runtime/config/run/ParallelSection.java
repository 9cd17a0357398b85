package dev.penstock.runtime.config.run;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.model.shape.OuterSettings;
import dev.penstock.runtime.model.shape.ZeroSettings;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Section {@code parallel}: how many ranks share what a pipeline alone would do. A run has as many
 * ranks as {@code pipeline.stages} x tensor x context x data.
 *
 * @param shards of every stage's matrices (Shoeybi et al., Megatron-LM, section 3)
 * @param sequence whether tensor shards divide among themselves the tokens of what lies between
 *     matrices (Korthikanti et al., Reducing Activation Recomputation, section 4.2.2)
 * @param context parts of every sequence
 * @param data copies of the whole, which share the micro-batches of a step
 * @param zeroStage what holders of the same parameters divide among themselves (Rajbhandari et al.,
 *     ZeRO, section 5)
 * @param zeroResidency how long gathered parameters stay
 * @param zeroPrefetchLayers layers that are gathered ahead of the one at work
 * @param zeroReduce when replicas sum their gradients
 * @param zeroOffload a folder on disk for moments and own parts of parameters
 * @param outerEvery steps that replicas take alone between two exchanges; empty: they add up their
 *     gradients in every step (Douillard et al., DiLoCo)
 * @param outerLag steps that are taken while an exchange is under way (Douillard et al., Streaming
 *     DiLoCo, section 2.3)
 * @param outerFragments parts of the model that are exchanged in turn (section 2.2)
 * @param outerOptimizer what is applied to the mean of what replicas have learned
 * @param outerLearningRate of that optimizer
 * @param outerMomentum of that optimizer
 * @param outerMixing share of its own parameters that a replica keeps after a lag
 * @param outerCodec in which form replicas exchange (section 2.4)
 * @param ringFrom the least size of what ranks in different processes sum and gather in a ring;
 *     empty: they always send directly
 * @param collectives who sums and gathers
 * @param devices how many there are, one for each rank; empty: as many as the product says
 */
public record ParallelSection(
        @Setting(
                        name = "tensor",
                        is = "1",
                        range = "[1, 4096]",
                        doc =
                                "tensor shards of every stage, each on a rank of its own; a list"
                                        + " [1, 2, ..] has those of each pipeline rank's stages")
                Shards shards,
        @Setting(
                        is = "false",
                        doc =
                                "tensor shards divide the tokens of norms and the residual stream"
                                        + " (must divide the rows of a micro-batch or slice)")
                boolean sequence,
        @Setting(
                        is = "1",
                        range = "[1, 4096]",
                        doc = "parts of every sequence, each on ranks of its own")
                int context,
        @Setting(
                        is = "1",
                        range = "[1, 4096]",
                        doc = "replicas of the pipeline, which share a step's micro-batches")
                int data,
        @Setting(
                        name = "zero.stage",
                        is = "0",
                        range = "[0, 3]",
                        doc =
                                "what replicas divide: 1 the optimizer's state, 2 gradients too, 3"
                                        + " parameters too")
                int zeroStage,
        @Setting(
                        name = "zero.residency",
                        is = "pass",
                        doc = "how long gathered parameters stay (stage 3)")
                Residency zeroResidency,
        @Setting(
                        name = "zero.prefetch-layers",
                        is = "1",
                        range = "[0, )",
                        doc = "layers gathered ahead of the one at work (stage 3)")
                int zeroPrefetchLayers,
        @Setting(
                        name = "zero.reduce",
                        is = "per-step",
                        doc = "when replicas sum their gradients (per-micro-batch: stages 2 and 3)")
                Reduce zeroReduce,
        @Setting(
                        name = "zero.offload",
                        is = "none",
                        word = "none",
                        output = true,
                        doc =
                                "a folder for optimizer state, with stage 3 parameters too, instead"
                                        + " of device memory")
                Optional<Path> zeroOffload,
        @Setting(
                        name = "outer.every",
                        is = "none",
                        word = "none",
                        range = "[1, )",
                        doc =
                                "steps that replicas take alone before they are brought together"
                                        + " (DiLoCo); none: they sum gradients in every step")
                Optional<Integer> outerEvery,
        @Setting(
                        name = "outer.lag",
                        is = "0",
                        range = "[0, )",
                        doc = "steps that go on while replicas exchange")
                int outerLag,
        @Setting(
                        name = "outer.fragments",
                        is = "1",
                        range = "[1, )",
                        doc = "parts of the model, every n-th layer each, that take turns")
                int outerFragments,
        @Setting(
                        name = "outer.optimizer",
                        is = "nesterov",
                        doc = "of the mean of what replicas have learned: SGD of either kind")
                OuterOptimizer outerOptimizer,
        @Setting(
                        name = "outer.learning-rate",
                        is = "" + USUAL_RATE,
                        range = "(0, )",
                        doc = "of the outer optimizer")
                double outerLearningRate,
        @Setting(
                        name = "outer.momentum",
                        is = "" + USUAL_MOMENTUM,
                        range = "[0, 1)",
                        doc = "of the outer optimizer")
                double outerMomentum,
        @Setting(
                        name = "outer.mixing",
                        is = "" + USUAL_MIXING,
                        range = "[0, 1)",
                        doc = "share of its own parameters that a replica keeps after a lag")
                double outerMixing,
        @Setting(
                        name = "outer.codec",
                        is = "none",
                        doc = "in which form replicas exchange what they have learned")
                OuterCodec outerCodec,
        @Setting(
                        is = "none",
                        word = "none",
                        doc =
                                "tensors of this size or more go round a ring where ranks of"
                                        + " different processes sum and gather; none: directly"
                                        + " from each to each")
                Optional<Bytes> ringFrom,
        @Setting(
                        is = "ordered",
                        doc =
                                "who sums and gathers: ordered, in rank order with the same bits in"
                                        + " every division; nccl on GPUs; auto: nccl where all of a"
                                        + " group have it")
                Collectives collectives,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, )",
                        doc =
                                "devices that there are, one for each rank; auto:"
                                        + " pipeline.stages x tensor x context x data")
                Optional<Integer> devices) {

    private static final double USUAL_RATE = 0.7;
    private static final double USUAL_MOMENTUM = 0.9;
    private static final double USUAL_MIXING = 0.5;

    /**
     * Tensor shards of stages.
     *
     * @param counts one for all stages, or one for those of each rank of the pipeline
     */
    public record Shards(List<Integer> counts) {
        public Shards {
            counts = List.copyOf(counts);
        }

        /** The same for all stages. */
        public static Shards of(int count) {
            return new Shards(List.of(count));
        }

        /** Whether they are those of so many ranks, which can send each other tensors. */
        boolean suit(int stages) {
            return counts.size() == stages && RankGrid.areMultiples(counts);
        }

        @Override
        public String toString() {
            return counts.size() == 1 ? "" + counts.getFirst() : counts.toString();
        }
    }

    /** The most tensor shards that a stage has. */
    public int tensor() {
        return Collections.max(shards.counts());
    }

    /** Returns what a configuration has that shards in different numbers do not allow. */
    List<Conflict> unevenConflicts(RunConfig config) {
        List<Integer> counts = shards.counts();
        List<Conflict> conflicts = new ArrayList<>();
        if (counts.size() == 1) {
            return conflicts;
        }
        int stages = config.pipeline().stages();
        if (counts.size() != stages) {
            conflicts.add(
                    uneven(
                            "one number, or one for each of the %d ranks of a pipeline"
                                    .formatted(stages),
                            "try parallel.tensor = " + tensor(),
                            "pipeline.stages"));
        }
        if (!RankGrid.areMultiples(counts)) {
            conflicts.add(
                    uneven(
                            "numbers of which each is a multiple of all smaller ones",
                            "try powers of two"));
        }
        if (counts.stream().distinct().count() == 1) {
            return conflicts;
        }
        if (sequence) {
            conflicts.add(
                    uneven(
                            "the same number for all stages where parallel.sequence = true: a shard sends the tokens that it has",
                            "try parallel.sequence = false",
                            "parallel.sequence"));
        }
        if (config.model().tied() && !counts.getFirst().equals(counts.getLast())) {
            conflicts.add(
                    uneven(
                            "the same number for the first and the last rank where model.tied = true: both have the token table",
                            "try model.tied = false",
                            "model.tied"));
        }
        if (config.dataPlane().errorFeedback()) {
            conflicts.add(
                    uneven(
                            "the same number for all stages where data-plane.error-feedback = true",
                            "try data-plane.error-feedback = false",
                            "data-plane.error-feedback"));
        }
        return conflicts;
    }

    private Conflict uneven(String expected, String advice, String... others) {
        List<String> keys = Stream.concat(Stream.of("parallel.tensor"), Stream.of(others)).toList();
        return new Conflict(keys, expected, shards.toString(), advice);
    }

    /** How long gathered parameters stay. */
    public enum Residency {
        LAYER,
        MICRO_BATCH,
        PASS,
        STEP
    }

    /** The outer optimizer: SGD whose momentum looks ahead, or does not. */
    public enum OuterOptimizer {
        NESTEROV,
        SGD
    }

    /** In which form replicas exchange. */
    public enum OuterCodec {
        NONE,
        FP16,
        BF16,
        INT8,
        INT4
    }

    /** Who sums and gathers: ranks in their order, or GPUs by NCCL in an order of its own. */
    public enum Collectives {
        ORDERED,
        NCCL,
        AUTO
    }

    /** When gradients are summed. */
    public enum Reduce {
        PER_STEP,
        PER_MICRO_BATCH
    }

    /** What holders of the same parameters divide, in the words of the model. */
    public ZeroSettings zero() {
        return new ZeroSettings(
                zeroStage,
                ZeroSettings.Residency.valueOf(zeroResidency.name()),
                zeroPrefetchLayers,
                ZeroSettings.Reduction.valueOf(zeroReduce.name()),
                zeroOffload);
    }

    /** How replicas that take steps alone are brought together; empty if they do not. */
    public Optional<OuterSettings> outer() {
        return outerEvery.map(
                every ->
                        new OuterSettings(
                                every,
                                outerLag,
                                outerFragments,
                                outerOptimizer == OuterOptimizer.NESTEROV,
                                outerLearningRate,
                                outerMomentum,
                                outerMixing,
                                outerCodec == OuterCodec.NONE
                                        ? Optional.empty()
                                        : Optional.of(WireCodec.valueOf(outerCodec.name()))));
    }

    /** Returns what is said of an exchange and has no effect, for people. */
    Optional<String> unusedNote() {
        if (outerEvery.isPresent()) {
            return outerLag > 0 || outerMixing == USUAL_MIXING
                    ? Optional.empty()
                    : Optional.of("parallel.outer.mixing has no effect: parallel.outer.lag = 0");
        }
        boolean said =
                outerLag > 0
                        || outerFragments > 1
                        || outerOptimizer != OuterOptimizer.NESTEROV
                        || outerLearningRate != USUAL_RATE
                        || outerMomentum != USUAL_MOMENTUM
                        || outerMixing != USUAL_MIXING
                        || outerCodec != OuterCodec.NONE;
        return said
                ? Optional.of("parallel.outer has no effect: parallel.outer.every = none")
                : Optional.empty();
    }

    /** {@link #ringFrom} in bytes; {@link CollectiveForm#NEVER} for none. */
    public long ringFromBytes() {
        return ringFrom.map(Bytes::bytes).orElse(CollectiveForm.NEVER);
    }
}
