package dev.penstock.runtime.config.run;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.config.reading.Worded;
import dev.penstock.runtime.model.shape.GradientSum;
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
 * @param tensorMesh sides of a mesh on which the shards of every stage lie; empty: on a line
 * @param tensorKind what such a mesh divides
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
 * @param outerAfter steps before, in which they do add them up (Lin et al., post-local SGD)
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
                        is = "[]",
                        range = "[1, 64]",
                        doc =
                                "sides of a mesh of the tensor shards, [2, 2] or [2, 2, 2], whose"
                                        + " product is tensor: they divide matrices by rows and"
                                        + " columns, and activations as well; []: by columns alone")
                List<Integer> tensorMesh,
        @Setting(
                        is = "auto",
                        doc =
                                "what a tensor-mesh divides: 2d (Optimus), 2.5d (Tesseract: as many"
                                        + " planes as the third side, each with other sequences) or"
                                        + " 3d; auto: 2d with two sides, 2.5d with three")
                TensorKind tensorKind,
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
                        name = "outer.after",
                        is = "0",
                        range = "[0, )",
                        doc = "steps before that, in which replicas sum gradients")
                int outerAfter,
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

    /** What a mesh of tensor shards divides. */
    public enum TensorKind implements Worded {
        AUTO("auto", TensorMesh.Kind.LINE),
        TWO("2d", TensorMesh.Kind.PLANE),
        TWO_AND_A_HALF("2.5d", TensorMesh.Kind.LAYERS),
        THREE("3d", TensorMesh.Kind.CUBE);

        private final String word;
        private final TensorMesh.Kind kind;

        TensorKind(String word, TensorMesh.Kind kind) {
            this.word = word;
            this.kind = kind;
        }

        @Override
        public String word() {
            return word;
        }
    }

    /** How tensor shards lie; {@link TensorMesh#NONE} also where the sides make no mesh. */
    public TensorMesh mesh() {
        if (tensorMesh.size() < 2 || tensorMesh.size() > 3 || shards.counts().size() > 1) {
            return TensorMesh.NONE;
        }
        int rows = tensorMesh.get(0);
        int columns = tensorMesh.get(1);
        int depth = tensorMesh.size() == 2 ? 1 : tensorMesh.get(2);
        TensorMesh.Kind kind =
                tensorKind != TensorKind.AUTO
                        ? tensorKind.kind
                        : tensorMesh.size() == 2 ? TensorMesh.Kind.PLANE : TensorMesh.Kind.LAYERS;
        boolean suits =
                rows == columns
                        && (kind != TensorMesh.Kind.PLANE || depth == 1)
                        && (kind != TensorMesh.Kind.CUBE || depth == rows)
                        && (long) rows * columns * depth == tensor();
        return suits ? new TensorMesh(kind, rows, columns, depth) : TensorMesh.NONE;
    }

    /** Parts into which tensor shards divide heads, hidden columns and the vocabulary. */
    public int parts() {
        return mesh().isThere() ? mesh().side() : tensor();
    }

    /** The key, with its value, on which {@link #parts} depends. */
    String partsKey() {
        return mesh().isThere()
                ? "the side of parallel.tensor-mesh = " + mesh().side()
                : "parallel.tensor = " + tensor();
    }

    /** Returns what a configuration has that a mesh of tensor shards does not allow. */
    List<Conflict> meshConflicts(RunConfig config) {
        List<Conflict> conflicts = new ArrayList<>();
        if (tensorMesh.isEmpty()) {
            require(
                    conflicts,
                    tensorKind == TensorKind.AUTO,
                    "auto without a mesh",
                    tensorKind.word(),
                    "say the sides: parallel.tensor-mesh = [2, 2]",
                    "parallel.tensor-kind");
            return conflicts;
        }
        if (!mesh().isThere()) {
            require(
                    conflicts,
                    false,
                    "[q, q] for 2d, [q, q, d] for 2.5d or [q, q, q] for 3d, with parallel.tensor = "
                            + shards
                            + " as its product",
                    tensorMesh + " of kind " + tensorKind.word(),
                    "try parallel { tensor = 4, tensor-mesh = [2, 2] }",
                    "parallel.tensor-mesh",
                    "parallel.tensor",
                    "parallel.tensor-kind");
            return conflicts;
        }
        new MeshRules(config, mesh(), tensorMesh).addTo(conflicts);
        return conflicts;
    }

    private static void require(
            List<Conflict> conflicts,
            boolean holds,
            String expected,
            String got,
            String advice,
            String... keys) {
        if (!holds) {
            conflicts.add(new Conflict(List.of(keys), expected, got, advice));
        }
    }

    /** What goes with a mesh, and with what its sizes have to go. */
    private record MeshRules(RunConfig config, TensorMesh mesh, List<Integer> sides) {
        void addTo(List<Conflict> conflicts) {
            sizes(conflicts);
            ParallelSection parallel = config.parallel();
            alone(
                    conflicts,
                    !parallel.sequence(),
                    "rows are divided already",
                    "leave parallel.sequence out",
                    "parallel.sequence");
            alone(
                    conflicts,
                    parallel.context() == 1,
                    "its rows are whole sequences",
                    "set parallel.context = 1",
                    "parallel.context");
            alone(
                    conflicts,
                    parallel.zeroStage() == 0 && parallel.zeroOffload().isEmpty(),
                    "gradients of what shards hold together are summed where they lie whole",
                    "leave parallel.zero out",
                    "parallel.zero.stage",
                    "parallel.zero.offload");
            alone(
                    conflicts,
                    parallel.outerEvery().isEmpty(),
                    "replicas exchange parameters of shards on a line alone",
                    "leave parallel.outer out",
                    "parallel.outer.every");
            alone(
                    conflicts,
                    config.schedule().sliceCount() == 1
                            && config.schedule().sliceLengths() instanceof SliceLengths.Rule,
                    "its rows are whole sequences",
                    "try a family that does not slice tokens, such as schedule.kind = 1f1b",
                    "schedule.kind",
                    "schedule.slices",
                    "schedule.slice-lengths");
            alone(
                    conflicts,
                    !config.device().kind().isCuda(),
                    "GPUs do not have norms of divided columns",
                    "try device.kind = cpu",
                    "device.kind");
            alone(
                    conflicts,
                    config.device().precision() == DeviceSection.Precision.FLOAT32,
                    "blocks of matrices are sent and multiplied in float32",
                    "set device.precision = float32",
                    "device.precision");
            alone(
                    conflicts,
                    config.model().family().equals("gpt2"),
                    "other families have norms of which shards cannot have some columns",
                    "try model.family = gpt2",
                    "model.family");
            alone(
                    conflicts,
                    config.model().dropout() == 0,
                    "what is dropped is drawn for whole rows",
                    "set model.dropout = 0",
                    "model.dropout");
            alone(
                    conflicts,
                    config.optimizer().gradientSum() == GradientSum.FLOAT32,
                    "products add up in float32",
                    "leave optimizer.gradient-sum out",
                    "optimizer.gradient-sum");
            alone(
                    conflicts,
                    config.fineTune().method() == FineTuneSection.Method.FULL
                            && config.fineTune().freeze().isEmpty(),
                    "all of the model is trained",
                    "leave fine-tune out",
                    "fine-tune.method",
                    "fine-tune.freeze");
            alone(
                    conflicts,
                    config.data().packing() == DataSection.Packing.NONE,
                    "rows of documents are not divided among shards",
                    "try data.packing = none",
                    "data.packing");
            alone(
                    conflicts,
                    !config.recovery().mirror(),
                    "mirrors copy what shards on a line hold",
                    "leave recovery.mirror out: a run goes on from its checkpoint",
                    "recovery.mirror");
            alone(
                    conflicts,
                    config.codecs().activations().isEmpty()
                            && config.codecs().gradients().isEmpty(),
                    "shards have parts of the rows that are coded",
                    "set data-plane.codec = none",
                    "data-plane.codec",
                    "data-plane.gradient-codec");
            alone(
                    conflicts,
                    !config.adapts(),
                    "no other plan is laid out on meshes",
                    "leave it out",
                    changing());
        }

        /** The key by which the plan may change. */
        private String changing() {
            if (config.pipeline().measured()) {
                return "pipeline.partition";
            }
            if (config.schedule().measured()) {
                return "schedule.wiring";
            }
            return config.schedule().candidates().isEmpty()
                    ? "recovery.rebalance-after"
                    : "schedule.candidates";
        }

        private void alone(
                List<Conflict> conflicts,
                boolean holds,
                String reason,
                String advice,
                String... others) {
            List<String> keys =
                    Stream.concat(Stream.of("parallel.tensor-mesh"), Stream.of(others)).toList();
            require(
                    conflicts,
                    holds,
                    "[] with this %s: %s".formatted(others[0], reason),
                    sides.toString(),
                    advice,
                    keys.toArray(String[]::new));
        }

        private void sizes(List<Conflict> conflicts) {
            ModelSection model = config.model();
            int rows = mesh.matrixRowParts();
            divided(
                    conflicts,
                    "batch.sequences",
                    "sequences of a micro-batch",
                    config.batch().sequencesPerMicroBatch(),
                    mesh.sequenceParts());
            divided(conflicts, "model.width", "columns", model.width(), rows);
            divided(
                    conflicts,
                    "model.vocabulary",
                    "tokens",
                    model.vocabularyOr(config.data().tokenizer().vocabulary()),
                    rows);
            divided(
                    conflicts,
                    "model.hidden",
                    "hidden columns",
                    model.hidden().orElse(4 * model.width()),
                    rows);
        }

        private void divided(
                List<Conflict> conflicts, String key, String what, int count, int parts) {
            require(
                    conflicts,
                    count % parts == 0,
                    "a multiple of %d %s, which parallel.tensor-mesh = %s divides"
                            .formatted(parts, what, sides),
                    Integer.toString(count),
                    "change %s or the mesh".formatted(key),
                    key,
                    "parallel.tensor-mesh");
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
        if (config.model().sharesTable() && !counts.getFirst().equals(counts.getLast())) {
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
                                        : Optional.of(WireCodec.valueOf(outerCodec.name())),
                                outerAfter));
    }

    /** Returns what is said of an exchange and has no effect, for people. */
    List<String> unusedNotes(int steps) {
        if (outerEvery.isPresent()) {
            return outerNotes(outerEvery.get(), steps);
        }
        boolean said =
                outerLag > 0
                        || outerAfter > 0
                        || outerFragments > 1
                        || outerOptimizer != OuterOptimizer.NESTEROV
                        || outerLearningRate != USUAL_RATE
                        || outerMomentum != USUAL_MOMENTUM
                        || outerMixing != USUAL_MIXING
                        || outerCodec != OuterCodec.NONE;
        return said
                ? List.of("parallel.outer has no effect: parallel.outer.every = none")
                : List.of();
    }

    private List<String> outerNotes(int every, int steps) {
        List<String> notes = new ArrayList<>();
        if (outerLag == 0 && outerMixing != USUAL_MIXING) {
            notes.add("parallel.outer.mixing has no effect: parallel.outer.lag = 0");
        }
        long first = (long) outerAfter + every + outerLag;
        if (outerAfter >= steps) {
            notes.add(
                    "parallel.outer has no effect: replicas sum gradients in all of run.steps = %d (parallel.outer.after = %d)"
                            .formatted(steps, outerAfter));
        } else if (first > steps) {
            notes.add(
                    "replicas are never brought together: the first exchange would be applied after step %d (parallel.outer.after + every + lag), and run.steps = %d"
                            .formatted(first, steps));
        }
        return notes;
    }

    /** {@link #ringFrom} in bytes; {@link CollectiveForm#NEVER} for none. */
    public long ringFromBytes() {
        return ringFrom.map(Bytes::bytes).orElse(CollectiveForm.NEVER);
    }
}
