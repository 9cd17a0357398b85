package dev.penstock.runtime.config.run;

import dev.penstock.actors.precision.LossScaling;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.FixedPoint;
import dev.penstock.runtime.config.links.LinkEntry;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.OptimizerState;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/** Finds values that are each allowed by their key and do not fit together. */
final class Consistency {
    private static final int MOST_TOKENS = 1 << 27;
    private static final String MODEL_FAMILY = "model.family";
    private static final String OUTER_EVERY = "parallel.outer.every";

    private final RunConfig config;
    private final List<Conflict> conflicts = new ArrayList<>();

    private Consistency(RunConfig config) {
        this.config = config;
    }

    static List<Conflict> of(RunConfig config) {
        Consistency consistency = new Consistency(config);
        consistency.nameIsAFileName();
        consistency.headsDivideTheWidth();
        consistency.modelIsOfItsFamily();
        consistency.whatIsTrainedExists();
        consistency.vocabularyHoldsTheTokens();
        consistency.documentsAreWhole();
        consistency.retentionRunsOnCpus();
        consistency.whatSeesBothWaysIsWhole();
        consistency.hiddenWordsHaveAMask();
        consistency.rowsOfDocumentsAreAllThere();
        consistency.answersAreKnown();
        consistency.parametersOfAGroupCanBeCounted();
        consistency.tokensOfAMicroBatchCanBeCounted();
        consistency.microBatchesDivideTheBatch();
        consistency.replicasDivideTheMicroBatches();
        consistency.shardsDivideTheHeads();
        consistency.shardsDivideGroupsAndHiddenColumns();
        consistency.shardsDivideTheRows();
        consistency.whatIsDividedIsShared();
        consistency.exactSumsHaveRoom();
        consistency.partsDivideTheContext();
        consistency.devicesAreTheProduct();
        consistency.productsAreOfTheDevice();
        consistency.headsFitTheGpu();
        consistency.gpusHaveTheirOwnMemory();
        consistency.ncclIsForGpusWithoutMirrors();
        consistency.everyStageHasWork();
        consistency.costsAreOfAllRanks();
        consistency.wiringsAreOfWiredKinds();
        consistency.everyStageHasSomebody();
        consistency.othersCanDoTheWorkOfTheDead();
        consistency.aRunRebalancesBeforeItGivesUp();
        consistency.candidatesAreGenerated();
        consistency.partitionMatches();
        consistency.slicesFillTheContext();
        consistency.recomputedBlocksExist();
        consistency.offloadedStagesExist();
        consistency.whatFitsIsAskedForOnce();
        consistency.learningRateFalls();
        consistency.keysAreOfTheLearningRatesSchedule();
        consistency.warmUpAndDecayFitTheRun();
        consistency.framesFitTheLog();
        consistency.emulatedLinksAreBetweenRanks();
        consistency.tasksHaveCheckpoints();
        consistency.linksKeepWhatTheyLose();
        consistency.linksKnowRowsThatComeAgain();
        consistency.theBestCheckpointIsKnown();
        consistency.lossScalesArePowersOfTwo();
        consistency.onlyCpusMultiplyHalves();
        consistency.onlyCpusCodeMoments();
        consistency.replicasApartDoNotScaleTheLoss();
        consistency.whatLinksKeepHasOneScale();
        consistency.conflicts.addAll(config.parallel().unevenConflicts(config));
        consistency.conflicts.addAll(config.parallel().meshConflicts(config));
        consistency.conflicts.addAll(config.device().swapConflicts(config));
        config.parallel().outerEvery().ifPresent(consistency::replicasApartHaveNothingInCommon);
        return consistency.conflicts;
    }

    private void nameIsAFileName() {
        require(
                config.run().name().matches("[A-Za-z0-9][A-Za-z0-9._-]*"),
                "letters, digits, dots, dashes and underscores: folders are named after it",
                "\"" + config.run().name() + "\"",
                "try " + RunSection.fileName(config.run().name()),
                "run.name");
    }

    private void tasksHaveCheckpoints() {
        int saved = config.checkpoint().every();
        int evaluated = config.evaluation().every();
        require(
                config.evaluation().tasks().isEmpty()
                        || (saved > 0 && evaluated > 0 && evaluated % saved == 0),
                "a multiple of checkpoint.every = %d, as evaluation.tasks are measured with checkpoints"
                        .formatted(saved),
                evaluated,
                "set both to the same number",
                "evaluation.every",
                "checkpoint.every",
                "evaluation.tasks");
    }

    /** The last step is saved, and evaluated where any is, so it alone would be no choice. */
    private void theBestCheckpointIsKnown() {
        int saved = config.checkpoint().every();
        int evaluated = config.evaluation().every();
        require(
                !config.checkpoint().keepBest()
                        || (saved > 0
                                && evaluated > 0
                                && (evaluated % saved == 0 || saved % evaluated == 0)),
                "a multiple or a divisor of checkpoint.every = %d, as checkpoint.keep-best compares checkpoints of evaluated steps"
                        .formatted(saved),
                evaluated,
                "set both to the same number",
                "evaluation.every",
                "checkpoint.every",
                "checkpoint.keep-best");
    }

    private void lossScalesArePowersOfTwo() {
        double initial = config.optimizer().lossScaleInitial();
        require(
                LossScaling.isScale(initial),
                "a power of two, by which scaling is exact",
                initial,
                "try %.0f"
                        .formatted(Math.scalb(1.0, Math.clamp(Math.getExponent(initial), 0, 126))),
                "optimizer.loss-scale-initial");
    }

    private void onlyCpusMultiplyHalves() {
        require(
                config.device().precision() != DeviceSection.Precision.FP16
                        || !config.device().kind().isCuda(),
                "float32 or bf16 where device.kind = " + config.device().kind().word(),
                "fp16",
                "try bf16, which GPUs multiply and which needs no loss scale",
                "device.precision",
                "device.kind");
        require(
                config.device().precision() != DeviceSection.Precision.FP16
                        || config.fineTune().frozen() != FineTuneSection.Frozen.BF16,
                "auto or float32 where device.precision = fp16",
                "bf16",
                "auto keeps frozen matrices in fp16",
                "fine-tune.frozen",
                "device.precision");
    }

    private void onlyCpusCodeMoments() {
        require(
                config.optimizer().state() != OptimizerState.INT8
                        || !config.device().kind().isCuda(),
                "float32 where device.kind = " + config.device().kind().word(),
                "int8",
                "try float32, or ZeRO to divide moments among replicas (parallel.zero.stage = 1)",
                "optimizer.state",
                "device.kind");
    }

    /** Their outer step is due after a number of steps, of which none may be skipped. */
    private void replicasApartDoNotScaleTheLoss() {
        require(
                config.parallel().outerEvery().isEmpty() || config.optimizer().scaling().isEmpty(),
                "none where parallel.outer.every is set, as replicas apart skip no step",
                config.optimizer().lossScale().word(),
                "leave one of them out",
                "optimizer.loss-scale",
                OUTER_EVERY);
    }

    private void whatLinksKeepHasOneScale() {
        require(
                !config.dataPlane().errorFeedback() || !config.optimizer().lossScale().isDynamic(),
                "none, or one power of two, where data-plane.error-feedback adds gradients of the step before",
                config.optimizer().lossScale().word(),
                "leave one of them out",
                "optimizer.loss-scale",
                "data-plane.error-feedback");
    }

    private void headsDivideTheWidth() {
        int heads = config.model().heads();
        int width = config.model().width();
        require(
                width % heads == 0 || config.model().headSize().isPresent(),
                "a multiple of model.heads = " + heads,
                width,
                "try " + around(width, heads),
                "model.width",
                "model.heads");
    }

    private void vocabularyHoldsTheTokens() {
        DataSection data = config.data();
        int tokens = data.tokenizer().vocabulary();
        int rows = config.model().vocabularyOr(tokens);
        require(
                rows >= tokens
                        || data.format() == DataSection.Format.TOKENS
                        || data.format() == DataSection.Format.GIVEN,
                "at least the %d tokens of data.tokenizer".formatted(tokens),
                rows,
                "try model.vocabulary = tokenizer",
                "model.vocabulary",
                "data.tokenizer",
                "data.format");
    }

    /** Where parts of a sequence attend to each other's keys, they know nothing of documents. */
    private void documentsAreWhole() {
        require(
                config.data().packing() == DataSection.Packing.NONE
                        || config.parallel().context() == 1,
                "1 where data.packing = %s: context parts do not know their borders"
                        .formatted(config.data().packing().word()),
                config.parallel().context(),
                "try token slices instead (schedule.kind = seq1f1b), or data.packing = none",
                "parallel.context",
                "data.packing");
    }

    /** Where layers keep a state. */
    private void retentionRunsOnCpus() {
        if (shape().stream().noneMatch(shape -> shape.block().retains())) {
            return;
        }
        require(
                !config.device().kind().isCuda(),
                "cpu where model.family = retnet: GPUs do not have its kernels yet",
                config.device().kind().word(),
                "try device.kind = cpu, or another family",
                "device.kind",
                "model.family");
    }

    private boolean seesBothWays() {
        return config.model().family().equals("bert")
                || config.model().family().equals("megatron-bert");
    }

    /** Where a token needs the keys of later ones, and what does not know of it. */
    private void whatSeesBothWaysIsWhole() {
        if (!seesBothWays()) {
            return;
        }
        String where = " where model.family = " + config.model().family();
        int slices =
                config.schedule().kind().sliced() && config.schedule().file().isEmpty()
                        ? config.schedule().sliceCount()
                        : 1;
        require(
                slices == 1,
                "1%s: a token needs the keys of later ones, so sequences are not cut"
                        .formatted(where),
                slices,
                "try an order that does not slice tokens, such as schedule.kind = 1f1b",
                "schedule.slices",
                "schedule.kind",
                MODEL_FAMILY);
        require(
                config.parallel().context() == 1,
                "1%s: a token needs the keys of later ones, so sequences are not divided"
                        .formatted(where),
                config.parallel().context(),
                "try parallel.tensor, or more stages",
                "parallel.context",
                MODEL_FAMILY);
        require(
                config.data().packing() == DataSection.Packing.NONE,
                "none%s: attention to both sides does not end with a document yet".formatted(where),
                config.data().packing().word(),
                "leave it out",
                "data.packing",
                MODEL_FAMILY);
        require(
                !config.device().kind().isCuda(),
                "cpu%s: GPUs do not attend to both sides yet".formatted(where),
                config.device().kind().word(),
                "try device.kind = cpu, or another family",
                "device.kind",
                MODEL_FAMILY);
        require(
                config.device().precision() == DeviceSection.Precision.FLOAT32,
                "float32%s: its head and its residuals are not rounded yet".formatted(where),
                config.device().precision().name().toLowerCase(Locale.ROOT),
                "leave it out",
                "device.precision",
                MODEL_FAMILY);
        require(
                config.model().dropout() == 0 || !config.model().family().equals("bert"),
                "0%s: the norm of the embeddings would stand behind what is dropped"
                        .formatted(where),
                config.model().dropout(),
                "leave it out, or try model.family = megatron-bert",
                "model.dropout",
                MODEL_FAMILY);
        require(
                config.evaluation().tasks().isEmpty(),
                "none%s: tasks ask for the next token".formatted(where),
                config.evaluation().tasks().size() + " of them",
                "leave them out",
                "evaluation.tasks",
                MODEL_FAMILY);
    }

    /** A model that sees both ways has seen its next token; others have no place for a mask. */
    private void hiddenWordsHaveAMask() {
        DataSection data = config.data();
        boolean masked = data.loss() == DataSection.Loss.MASKED;
        boolean classifies = data.loss() == DataSection.Loss.LABELS;
        if (classifies || !config.model().labels().isEmpty()) {
            classesAreKnown();
            return;
        }
        require(
                masked == seesBothWays(),
                seesBothWays()
                        ? "masked where model.family = %s: its tokens see the next one"
                                .formatted(config.model().family())
                        : "all or answers where model.family = %s: it predicts the next token"
                                .formatted(config.model().family()),
                data.loss().word(),
                seesBothWays()
                        ? "set data.loss = masked"
                        : "leave it out, or try model.family = bert",
                "data.loss",
                MODEL_FAMILY);
        if (!masked) {
            return;
        }
        int words = data.tokenizer().vocabulary();
        int vocabulary = config.model().vocabularyOr(words);
        boolean ofTokenizer =
                data.format() != DataSection.Format.TOKENS
                        && data.format() != DataSection.Format.GIVEN;
        require(
                data.maskToken().isPresent() || vocabulary > words || !ofTokenizer,
                "a token for hidden words, which data.tokenizer does not have: model.vocabulary above %d"
                        .formatted(words),
                vocabulary,
                "try model.vocabulary = %d, or name a token in data.mask-token"
                        .formatted(words + 1),
                "model.vocabulary",
                "data.mask-token",
                "data.tokenizer");
        int mask = data.maskToken().orElse(0);
        require(
                mask < vocabulary,
                "a token below model.vocabulary = " + vocabulary,
                mask,
                "try data.mask-token = last",
                "data.mask-token",
                "model.vocabulary");
    }

    /** A head that classifies, and the texts from which it learns. */
    private void classesAreKnown() {
        DataSection data = config.data();
        List<String> labels = config.model().labels();
        require(
                seesBothWays() || labels.isEmpty(),
                "bert or megatron-bert where model.labels is set",
                config.model().family(),
                "leave model.labels out",
                MODEL_FAMILY,
                "model.labels");
        require(
                data.loss() == DataSection.Loss.LABELS,
                "labels where model.labels is set",
                data.loss().word(),
                "set data.loss = labels",
                "data.loss",
                "model.labels");
        require(
                labels.size() > 1 && labels.stream().distinct().count() == labels.size(),
                "the names of two classes or more where data.loss = labels",
                labels,
                "name them as the data does, which penstock data prepare prints",
                "model.labels",
                "data.loss");
        require(
                data.format() == DataSection.Format.TOKENS
                        || data.format() == DataSection.Format.JSONL,
                "jsonl or tokens where data.loss = labels",
                data.format().name().toLowerCase(Locale.ROOT),
                "give JSON lines, or make a file of them by penstock data prepare --label",
                "data.format",
                "data.loss");
        require(
                config.model().context() >= 4,
                "4 or more where data.loss = labels: texts have tokens around them",
                config.model().context(),
                "",
                "model.context",
                "data.loss");
        require(
                config.parallel().tensor() <= Math.max(2, labels.size()),
                "at most %d, as every tensor shard has a class".formatted(labels.size()),
                config.parallel().tensor(),
                "use fewer shards",
                "parallel.tensor",
                "model.labels");
        require(
                config.batch().last() == BatchSection.Last.FULL,
                "full where data.loss = labels: epochs follow each other without a border",
                "smaller",
                "leave it out",
                "batch.last",
                "data.loss");
    }

    /** Which rows do not exist is said by their places in the step, and these are sorted. */
    private void rowsOfDocumentsAreAllThere() {
        require(
                !config.data().packing().apart() || config.batch().last() == BatchSection.Last.FULL,
                "full where data.packing = %s: rows of all lengths come together in every step"
                        .formatted(config.data().packing().word()),
                "smaller",
                "leave it out",
                "batch.last",
                "data.packing");
        require(
                !config.data().packing().apart()
                        || config.data().format() != DataSection.Format.GIVEN,
                "none where a program gives the tokens",
                config.data().packing().word(),
                "leave it out",
                "data.packing",
                "data.format");
    }

    private void answersAreKnown() {
        require(
                config.data().loss() == DataSection.Loss.ALL
                        || config.data().format() == DataSection.Format.CHAT
                        || config.data().format() == DataSection.Format.TOKENS
                        || config.data().loss() == DataSection.Loss.MASKED
                        || config.data().loss() == DataSection.Loss.LABELS,
                "all, unless data.format is chat, or tokens with targets",
                "answers",
                "try data.loss = all",
                "data.loss",
                "data.format");
    }

    /**
     * A shard's parameters of a block lie in one row, and so do those of a table, so that one
     * collective moves them; the elements of a row are counted in 31 bits.
     */
    private void parametersOfAGroupCanBeCounted() {
        int shards = config.parallel().tensor();
        long width = config.model().width();
        long vectors = 14 * width + 192; // biases, gains, and what fills lines up
        long block = matrices().orElse(12 * width * width) / shards + vectors;
        long rows = config.model().vocabularyOr(config.data().tokenizer().vocabulary());
        countable(block, "of a block", "model.width", "parallel.tensor");
        countable(
                Math.ceilDiv(rows, shards) * width,
                "of the token table",
                "model.vocabulary",
                "model.width",
                "parallel.tensor");
        countable(positionRows() * width, "of the position table", "model.context", "model.width");
    }

    private OptionalLong matrices() {
        return shape().stream()
                .mapToLong(
                        shape ->
                                IntStream.range(0, shape.layers())
                                        .mapToLong(shape::layerMatrixParameters)
                                        .max()
                                        .orElseThrow())
                .findFirst();
    }

    private long positionRows() {
        return shape().map(shape -> (long) shape.addedRows())
                .orElse((long) config.model().context());
    }

    /** Returns the model's shape if its values make one. */
    private Optional<ModelShape> shape() {
        try {
            return Optional.of(config.model().shape(config.data().tokenizer().vocabulary()));
        } catch (IllegalArgumentException e) {
            return Optional.empty();
        }
    }

    private void modelIsOfItsFamily() {
        ModelSection model = config.model();
        if (model.width() % model.heads() == 0 || model.headSize().isPresent()) {
            conflicts.addAll(ModelChecks.of(model, config.data().tokenizer().vocabulary()));
        }
    }

    private void whatIsTrainedExists() {
        shape().ifPresent(shape -> conflicts.addAll(ModelChecks.ofTuning(config, shape)));
    }

    private void shardsDivideGroupsAndHiddenColumns() {
        int shards = config.parallel().parts();
        shape().ifPresent(
                        shape -> {
                            divided("model.key-heads", shape.block().heads().keys(), shards);
                            divided("model.hidden", shape.block().hidden(), shards);
                        });
    }

    private void divided(String key, int count, int shards) {
        boolean told = config.model().heads() % shards != 0; // of the heads already
        require(
                count % shards == 0 || told,
                "a multiple of " + config.parallel().partsKey(),
                count,
                "try " + around(count, shards),
                key,
                "parallel.tensor");
    }

    private void countable(long parameters, String whose, String... keys) {
        require(
                parameters <= Integer.MAX_VALUE,
                "at most %,d parameters %s on a shard".formatted(Integer.MAX_VALUE, whose),
                "about %,d".formatted(parameters),
                List.of(keys).contains("parallel.tensor")
                        ? "use more tensor shards: parallel.tensor"
                        : "use a shorter context or a smaller width",
                keys);
    }

    /** Rows of an activation are counted in 31 bits, and blocks of them are listed in plans. */
    private void tokensOfAMicroBatchCanBeCounted() {
        int parts = config.batch().microBatches();
        long tokens =
                Math.ceilDiv(config.batch().sequences(), parts) * (long) config.model().context();
        require(
                tokens <= MOST_TOKENS,
                "at most %,d tokens in a micro-batch".formatted(MOST_TOKENS),
                "%,d".formatted(tokens),
                "use more micro-batches: batch.micro-batches",
                "batch.sequences",
                "batch.micro-batches",
                "model.context");
    }

    private void microBatchesDivideTheBatch() {
        int sequences = config.batch().sequences();
        int microBatches = config.batch().microBatches();
        require(
                sequences % microBatches == 0,
                "a multiple of batch.micro-batches = " + microBatches,
                sequences,
                "try " + around(sequences, microBatches),
                "batch.sequences",
                "batch.micro-batches");
    }

    private void replicasDivideTheMicroBatches() {
        int microBatches = config.batch().microBatches();
        int replicas = config.parallel().data();
        require(
                microBatches % replicas == 0,
                "a multiple of parallel.data = " + replicas,
                microBatches,
                "try " + dividedBy(replicas, microBatches, config.batch().sequences()),
                "batch.micro-batches",
                "parallel.data");
    }

    /** The nearest number of micro-batches that sequences and replicas allow. */
    private static String dividedBy(int replicas, int microBatches, int sequences) {
        long most = Math.min(sequences, 2L * microBatches);
        return IntStream.iterate(replicas, count -> count <= most, count -> count + replicas)
                .filter(count -> sequences % count == 0)
                .boxed()
                .min(Comparator.comparingInt(count -> Math.abs(count - microBatches)))
                .map(count -> "" + count)
                .orElseGet(
                        () ->
                                "batch.sequences = %s, with as many micro-batches"
                                        .formatted(around(sequences, replicas)));
    }

    private void productsAreOfTheDevice() {
        DeviceSection device = config.device();
        boolean cuda = device.kind().isCuda();
        require(
                device.gemm().isOf(device.kind()),
                "%s where device.kind = %s"
                        .formatted(
                                cuda ? "auto, cublas or kernels" : "auto, onednn or java",
                                device.kind().word()),
                device.gemm().name().toLowerCase(Locale.ROOT),
                "try device.gemm = auto",
                "device.gemm",
                "device.kind");
    }

    private void headsFitTheGpu() {
        int columns = shape().map(shape -> shape.block().heads().size()).orElse(0);
        boolean said = config.model().headSize().isPresent();
        require(
                columns <= AttentionShape.MOST_COLUMNS_ON_GPU || !config.device().kind().isCuda(),
                "heads of at most %d columns where device.kind = %s"
                        .formatted(
                                AttentionShape.MOST_COLUMNS_ON_GPU, config.device().kind().word()),
                columns,
                "use more heads, or device.kind = cpu",
                said ? "model.head-size" : "model.heads",
                said ? "model.heads" : "model.width",
                "device.kind");
    }

    /** It adds in an order of its own: what is there a second time would not be the same. */
    private void ncclIsForGpusWithoutMirrors() {
        boolean nccl = config.parallel().collectives() == ParallelSection.Collectives.NCCL;
        require(
                !nccl || config.device().kind().isCuda(),
                "ordered or auto where device.kind = " + config.device().kind().word(),
                "nccl",
                "NCCL is for GPUs: try device.kind = cuda, or parallel.collectives = ordered",
                "parallel.collectives",
                "device.kind");
        require(
                !nccl || config.device().kind().gpu().isEmpty(),
                "ordered or auto where all ranks share one GPU",
                "nccl",
                "NCCL wants a GPU for each rank: try device.kind = cuda",
                "parallel.collectives",
                "device.kind");
        require(
                !nccl || !config.recovery().mirror(),
                "ordered where recovery.mirror = true",
                "nccl",
                "a rank that goes on from its mirror promises the bits of one that never died;"
                        + " NCCL's sums depend on who lives where",
                "parallel.collectives",
                "recovery.mirror");
    }

    /** The places of what links keep are those of equal micro-batches. */
    private void linksKeepWhatTheyLose() {
        boolean keeps = config.dataPlane().keepsLosses();
        require(
                !keeps || config.data().packing() != DataSection.Packing.LENGTHS,
                "false where data.packing = lengths",
                true,
                "micro-batches of unequal lengths have other places in every step: try data.packing"
                        + " = padded",
                "data-plane.error-feedback",
                "data.packing");
    }

    /** Deltas are those of rows that come again. */
    private void linksKnowRowsThatComeAgain() {
        boolean sends = config.dataPlane().sendsDeltas();
        int rows = config.dataPlane().deltaRows();
        DataSection.Packing packing = config.data().packing();
        require(
                !sends || packing.apart(),
                "0 where data.packing = %s: its rows begin elsewhere in every epoch, and none comes again"
                        .formatted(packing.word()),
                rows,
                "try data.packing = padded, whose rows are those of documents in every epoch",
                "data-plane.delta-rows",
                "data.packing");
        int sequences = config.batch().sequencesPerMicroBatch();
        require(
                !sends || !config.parallel().sequence() || sequences == 1,
                "0 where parallel.sequence = true divides micro-batches of %d sequences"
                        .formatted(sequences),
                rows,
                "shards have other parts of a row each time: try micro-batches of one sequence, or"
                        + " parallel.sequence = false",
                "data-plane.delta-rows",
                "parallel.sequence",
                "batch.micro-batches");
    }

    /** Files mapped into memory are the processor's alone. */
    private void gpusHaveTheirOwnMemory() {
        Optional<Path> offload = config.parallel().zeroOffload();
        require(
                offload.isEmpty() || !config.device().kind().isCuda(),
                "none where device.kind = " + config.device().kind().word(),
                offload.map(Path::toString).orElse("none"),
                "divide the optimizer's state instead: parallel { data = 2, zero.stage = 1 }",
                "parallel.zero.offload",
                "device.kind");
    }

    private void shardsDivideTheHeads() {
        int heads = config.model().heads();
        int shards = config.parallel().parts();
        require(
                heads % shards == 0,
                "a multiple of " + config.parallel().partsKey(),
                heads,
                "try " + around(heads, shards),
                "model.heads",
                "parallel.tensor");
    }

    private void shardsDivideTheRows() {
        ParallelSection parallel = config.parallel();
        if (!parallel.sequence()) {
            return;
        }
        require(
                parallel.tensor() > 1,
                "2 or more where parallel.sequence = true: shards divide tokens among themselves",
                parallel.tensor(),
                "try parallel.tensor = 2, or leave parallel.sequence out",
                "parallel.tensor",
                "parallel.sequence");
        int parts = parallel.context();
        boolean cut =
                config.schedule().file().isEmpty()
                        && config.model().context() % parts == 0
                        && config.schedule().sliceCount() <= config.model().context() / parts;
        if (cut) {
            List<Integer> rows =
                    config.rowsOfUnits(config.schedule().tokensPerSlice(config.model(), parts));
            require(
                    rows.stream().allMatch(count -> count % parallel.tensor() == 0),
                    RunConfig.ROWS_OF_SHARDS + parallel.tensor(),
                    rows,
                    "try other batch.sequences or slices, or parallel.sequence = false",
                    "parallel.sequence",
                    "parallel.tensor",
                    "parallel.context",
                    "batch.sequences",
                    "batch.micro-batches",
                    "schedule.slices",
                    "schedule.slice-lengths",
                    "model.context");
        }
    }

    /** Where all addends of a sum are as large as one may be. */
    private void exactSumsHaveRoom() {
        ParallelSection parallel = config.parallel();
        boolean exact = config.optimizer().gradientSum() == GradientSum.FIXED_POINT;
        long addends =
                (long) config.batch().microBatches() * parallel.context() * parallel.tensor();
        require(
                !exact || addends <= FixedPoint.MOST_ADDENDS,
                "float32 where micro-batches x parallel.context x parallel.tensor are more than %,d"
                        .formatted(FixedPoint.MOST_ADDENDS),
                "fixed-point",
                "try fewer and larger micro-batches, or optimizer.gradient-sum = float32",
                "optimizer.gradient-sum",
                "batch.micro-batches",
                "parallel.context",
                "parallel.tensor");
    }

    private void whatIsDividedIsShared() {
        ParallelSection parallel = config.parallel();
        int holders = parallel.data() * parallel.context();
        require(
                parallel.zeroStage() == 0 || holders > 1 || parallel.zeroOffload().isPresent(),
                "0 where nobody else holds the same parameters (parallel.data x parallel.context ="
                        + " 1)",
                parallel.zeroStage(),
                "use replicas, such as parallel.data = 2, or parallel.zero.offload",
                "parallel.zero.stage",
                "parallel.data",
                "parallel.context",
                "parallel.zero.offload");
        require(
                parallel.zeroReduce() == ParallelSection.Reduce.PER_STEP
                        || parallel.zeroStage() >= 2,
                "per-step unless gradients are divided (parallel.zero.stage = 2 or 3)",
                "per-micro-batch",
                "try parallel.zero.stage = 2",
                "parallel.zero.reduce",
                "parallel.zero.stage");
    }

    /** Replicas that take steps alone are not equal, so whatever relies on that is not for them. */
    private void replicasApartHaveNothingInCommon(int every) {
        turnsFit(every);
        replicasAreSeveralAndWhole(every);
        boolean wired = config.schedule().isWiredKind();
        require(
                !wired,
                "none where replicas do each other's micro-batches (schedule.kind = %s)"
                        .formatted(config.schedule().kind().word()),
                every,
                "leave it out, or take another kind",
                OUTER_EVERY,
                "schedule.kind");
        require(
                wired || config.optimizer().gradientSum() == GradientSum.FLOAT32,
                "float32 where replicas take steps alone: each sums what it computes itself",
                "fixed-point",
                "leave it out",
                "optimizer.gradient-sum",
                OUTER_EVERY);
        require(
                !config.recovery().mirror(),
                "false where replicas take steps alone: mirrors do not have what they exchange",
                true,
                "without mirrors a run goes on from a checkpoint, which has it",
                "recovery.mirror",
                OUTER_EVERY);
    }

    private void turnsFit(int every) {
        ParallelSection parallel = config.parallel();
        int fragments = parallel.outerFragments();
        int most = Math.min(every, config.model().layers().count());
        require(
                fragments <= most,
                "at most as many as there are steps between two exchanges (%s = %d) and layers (%d)"
                        .formatted(OUTER_EVERY, every, config.model().layers().count()),
                fragments,
                "try " + most,
                "parallel.outer.fragments",
                OUTER_EVERY,
                "model.layers");
        int between = every / Math.min(fragments, most);
        require(
                parallel.outerLag() < between,
                "less than the %d steps from one fragment's turn to the next one's"
                        .formatted(between),
                parallel.outerLag(),
                between == 1 ? "try 0, or more steps between exchanges" : "try " + (between - 1),
                "parallel.outer.lag",
                OUTER_EVERY,
                "parallel.outer.fragments");
    }

    private void replicasAreSeveralAndWhole(int every) {
        ParallelSection parallel = config.parallel();
        require(
                parallel.data() > 1,
                "none where there is one replica (parallel.data = 1)",
                every,
                "use replicas, such as parallel.data = 2",
                OUTER_EVERY,
                "parallel.data");
        require(
                parallel.context() == 1,
                "1 where replicas take steps alone: parts of a sequence have to sum in every step",
                parallel.context(),
                "use more replicas instead: parallel.data",
                "parallel.context",
                OUTER_EVERY);
        require(
                parallel.zeroStage() == 0,
                "0 where replicas take steps alone: they hold nothing in common to divide",
                parallel.zeroStage(),
                "try parallel.zero.stage = 0",
                "parallel.zero.stage",
                OUTER_EVERY);
        require(
                parallel.zeroOffload().isEmpty(),
                "none where replicas take steps alone",
                parallel.zeroOffload().map(Path::toString).orElse("none"),
                "leave it out",
                "parallel.zero.offload",
                OUTER_EVERY);
    }

    private void partsDivideTheContext() {
        int context = config.model().context();
        int parts = config.parallel().context();
        require(
                context % parts == 0,
                "a multiple of parallel.context = " + parts,
                context,
                "try " + around(context, parts),
                "model.context",
                "parallel.context");
    }

    private void devicesAreTheProduct() {
        ParallelSection parallel = config.parallel();
        int product = config.grid().ranks();
        require(
                parallel.devices().orElse(product) == product,
                "%d, one for each rank (pipeline.stages %d x tensor %d x context %d x data %d)"
                        .formatted(
                                product,
                                config.pipeline().stages(),
                                parallel.tensor(),
                                parallel.context(),
                                parallel.data()),
                parallel.devices().orElse(product),
                "change a factor, or try parallel.devices = auto",
                "parallel.devices",
                "pipeline.stages",
                "parallel.tensor",
                "parallel.context",
                "parallel.data");
    }

    /** The embedding and the head can stand alone, in front and at the end. */
    private void everyStageHasWork() {
        int layers = config.model().layers().count();
        require(
                config.stages() <= layers + 2,
                "at most %d: one stage per layer (model.layers = %d), one for the embedding, one for the head"
                        .formatted(layers + 2, layers),
                "%d (pipeline.stages = %d x pipeline.chunks = %d)"
                        .formatted(config.stages(), config.pipeline().stages(), config.chunks()),
                "try fewer stages, fewer chunks or more layers",
                "pipeline.stages",
                "pipeline.chunks",
                "model.layers");
    }

    private void partitionMatches() {
        if (config.pipeline().partition().layers().isEmpty()) {
            return;
        }
        List<Integer> partition = config.pipeline().partition().layers().get();
        int layers = config.model().layers().count();
        int stages = config.stages();
        require(
                partition.size() == stages && sum(partition) == layers,
                "%d entries (pipeline.stages x pipeline.chunks = %d x %d) that add up to %d (model.layers)"
                        .formatted(stages, config.pipeline().stages(), config.chunks(), layers),
                "%s: %d entries, sum %d".formatted(partition, partition.size(), sum(partition)),
                "try flops, or " + evenly(layers, stages),
                "pipeline.partition",
                "pipeline.stages",
                "pipeline.chunks",
                "model.layers");
        require(
                partition.stream()
                        .skip(1)
                        .limit(Math.max(0, partition.size() - 2))
                        .allMatch(n -> n > 0),
                "no 0 but at the ends: the first stage has the embedding, the last the head",
                partition,
                "try flops, or " + evenly(layers, stages),
                "pipeline.partition");
    }

    private void costsAreOfAllRanks() {
        boolean wired = config.schedule().isWiredKind();
        int ranks = wired ? config.grid().ranks() : config.pipeline().stages();
        int wanted = ScheduleSection.COSTS_OF_RANK * ranks;
        int got = config.schedule().costs().size();
        require(
                got == 0 || got == wanted,
                "none, or %d numbers: three for each of %s%d ranks"
                        .formatted(wanted, wired ? "" : "pipeline.stages = ", ranks),
                got + " numbers",
                "leave it out",
                "schedule.costs",
                "pipeline.stages");
    }

    private void wiringsAreOfWiredKinds() {
        ScheduleSection schedule = config.schedule();
        String kinds = "unless schedule.kind is wired-1f1b or wired-zb, without schedule.file";
        if (!schedule.isWiredKind()) {
            require(
                    schedule.wiring() == ScheduleSection.Wiring.STRAIGHT,
                    "straight " + kinds,
                    schedule.wiring().name().toLowerCase(Locale.ROOT),
                    "leave it out",
                    "schedule.wiring",
                    "schedule.kind",
                    "schedule.file");
            require(
                    schedule.without().isEmpty(),
                    "[] " + kinds,
                    schedule.without(),
                    "leave it out",
                    "schedule.without",
                    "schedule.kind",
                    "schedule.file");
            require(
                    schedule.holdMore().isEmpty(),
                    "auto " + kinds,
                    schedule.holdMore().orElse(0),
                    "leave it out",
                    "schedule.hold-more",
                    "schedule.kind",
                    "schedule.file");
        }
        require(
                schedule.wiringSeed() == 0 || schedule.wiring() == ScheduleSection.Wiring.RANDOM,
                "0 unless schedule.wiring = random",
                schedule.wiringSeed(),
                "leave it out",
                "schedule.wiring-seed",
                "schedule.wiring");
    }

    private void everyStageHasSomebody() {
        ScheduleSection schedule = config.schedule();
        if (!schedule.isWiredKind()) {
            return;
        }
        int stages = config.pipeline().stages();
        int ranks = config.grid().ranks();
        require(
                schedule.without().stream().allMatch(rank -> rank < ranks),
                "ranks below %d (pipeline.stages = %d x parallel.data = %d)"
                        .formatted(ranks, stages, config.parallel().data()),
                schedule.without(),
                "the first rank is 0",
                "schedule.without",
                "pipeline.stages",
                "parallel.data");
        List<Integer> lost =
                IntStream.range(0, stages)
                        .filter(
                                stage ->
                                        schedule.without().stream()
                                                        .distinct()
                                                        .filter(rank -> rank % stages == stage)
                                                        .count()
                                                == config.parallel().data())
                        .boxed()
                        .toList();
        require(
                lost.isEmpty(),
                "a rank that is left for every stage",
                "%s, so nobody for stages %s".formatted(schedule.without(), lost),
                "rank r of replica d is d x pipeline.stages + r",
                "schedule.without",
                "pipeline.stages",
                "parallel.data");
    }

    private void othersCanDoTheWorkOfTheDead() {
        if (!config.recovery().degraded()) {
            return;
        }
        require(
                config.schedule().isWiredKind(),
                "an order in which replicas do each other's work, for recovery.degraded = true",
                config.schedule().kind().word(),
                "set schedule.kind = wired-1f1b or wired-zb, without schedule.file",
                "schedule.kind",
                "recovery.degraded");
        require(
                !config.recovery().mirror(),
                "false with recovery.degraded = true: other replicas hold all that a rank does",
                "true",
                "leave it out",
                "recovery.mirror",
                "recovery.degraded");
        require(
                config.parallel().data() > 1,
                "2 or more with recovery.degraded = true: others have to hold what a dead rank held",
                config.parallel().data(),
                "try parallel.data = 2, or leave recovery.degraded out",
                "parallel.data",
                "recovery.degraded");
    }

    private void aRunRebalancesBeforeItGivesUp() {
        RecoverySection recovery = config.recovery();
        if (recovery.rebalanceAfter().isEmpty()) {
            return;
        }
        Duration wait = recovery.rebalanceAfter().get();
        require(
                wait.compareTo(recovery.roomPatience()) < 0,
                "less than recovery.room-patience = %d s, after which the run ends"
                        .formatted(recovery.roomPatience().toSeconds()),
                "%d s".formatted(wait.toSeconds()),
                "try recovery.rebalance-after = 10 s",
                "recovery.rebalance-after",
                "recovery.room-patience");
    }

    private void candidatesAreGenerated() {
        require(
                config.schedule().candidates().isEmpty() || config.schedule().file().isEmpty(),
                "no candidates beside an order from a file, whose stages they may not have",
                config.schedule().candidates().stream().map(ScheduleSection.Kind::word).toList(),
                "name the order's kind in schedule.kind, or leave the candidates out",
                "schedule.candidates",
                "schedule.file");
        require(
                config.schedule().candidates().isEmpty()
                        || (!config.schedule().kind().isWired()
                                && config.schedule().candidates().stream()
                                        .noneMatch(ScheduleSection.Kind::isWired)),
                "no candidates beside or among wired kinds: ranks hold other micro-batches there",
                config.schedule().candidates().stream().map(ScheduleSection.Kind::word).toList(),
                "leave them out",
                "schedule.candidates",
                "schedule.kind");
    }

    private void slicesFillTheContext() {
        ScheduleSection schedule = config.schedule();
        int context = config.model().context();
        if (!schedule.kind().sliced() || schedule.file().isPresent()) {
            return;
        }
        if (schedule.sliceLengths() instanceof SliceLengths.Given(List<Integer> lengths)) {
            require(
                    sum(lengths) == context,
                    "lengths that add up to model.context = " + context,
                    "%s: sum %d".formatted(lengths, sum(lengths)),
                    "try schedule.slice-lengths = equal",
                    "schedule.slice-lengths",
                    "model.context");
            int parts = config.parallel().context();
            require(
                    lengths.stream().allMatch(length -> length % parts == 0),
                    "multiples of parallel.context = %d: every part holds as many tokens of a slice"
                            .formatted(parts),
                    lengths,
                    "try schedule.slice-lengths = equal",
                    "schedule.slice-lengths",
                    "parallel.context");
        } else {
            int parts = config.parallel().context();
            require(
                    schedule.sliceCount() <= context / parts,
                    parts == 1
                            ? "at most one slice per token, and model.context = " + context
                            : "at most %d: a token of every slice for each part (model.context = %d, parallel.context = %d)"
                                    .formatted(context / parts, context, parts),
                    schedule.sliceCount(),
                    "try fewer slices",
                    "schedule.slices",
                    "model.context",
                    "parallel.context");
        }
    }

    private void recomputedBlocksExist() {
        if (config.schedule().recompute() instanceof Recompute.Given(List<Integer> blocks)) {
            int layers = config.model().layers().count();
            require(
                    blocks.stream().allMatch(block -> block < layers),
                    "blocks from 0 to %d (model.layers = %d)".formatted(layers - 1, layers),
                    blocks,
                    "try schedule.recompute = blocks",
                    "schedule.recompute",
                    "model.layers");
        }
    }

    private void offloadedStagesExist() {
        if (config.schedule().offload() instanceof Offload.Given(List<Integer> offloaded)) {
            int stages = config.pipeline().stages() * config.chunks();
            require(
                    offloaded.stream().allMatch(stage -> stage < stages),
                    "stages from 0 to %d (pipeline.stages x pipeline.chunks = %d)"
                            .formatted(stages - 1, stages),
                    offloaded,
                    "try schedule.offload = all",
                    "schedule.offload",
                    "pipeline.stages",
                    "pipeline.chunks");
        }
        require(
                config.schedule().offload() == Offload.Rule.NONE
                        || !config.schedule().recompute().units(),
                "none where schedule.recompute = full: a unit that is run again keeps nothing to"
                        + " offload",
                "schedule.offload",
                "try schedule.recompute = blocks, which keeps the blocks' inputs",
                "schedule.offload",
                "schedule.recompute");
    }

    private void whatFitsIsAskedForOnce() {
        ScheduleSection schedule = config.schedule();
        if (schedule.activations() != ScheduleSection.Activations.FIT) {
            return;
        }
        require(
                config.device().memoryLimit().isPresent(),
                "as-set where there is no device.memory-limit to fit into",
                "fit",
                "set device.memory-limit, or leave schedule.activations out",
                "schedule.activations",
                "device.memory-limit");
        require(
                schedule.recompute() == Recompute.Rule.NONE
                        && schedule.offload() == Offload.Rule.NONE,
                "as-set where schedule.recompute or schedule.offload is given",
                "fit",
                "leave those out: what fits is chosen",
                "schedule.activations",
                "schedule.recompute",
                "schedule.offload");
    }

    private void learningRateFalls() {
        OptimizerSection optimizer = config.optimizer();
        require(
                optimizer.finalLearningRate() <= optimizer.learningRate(),
                "at most optimizer.learning-rate = " + optimizer.learningRate(),
                optimizer.finalLearningRate(),
                "try auto, a tenth of it",
                "optimizer.min-learning-rate",
                "optimizer.learning-rate");
    }

    private void keysAreOfTheLearningRatesSchedule() {
        OptimizerSection optimizer = config.optimizer();
        String schedule = optimizer.schedule().name().toLowerCase(Locale.ROOT);
        require(
                optimizer.decaySteps().isEmpty()
                        || optimizer.schedule() == LearningRate.Schedule.WSD,
                "auto where optimizer.schedule = " + schedule,
                optimizer.decaySteps().orElse(0),
                "try optimizer.schedule = wsd, which alone has steps of decay",
                "optimizer.decay-steps",
                "optimizer.schedule");
        require(
                optimizer.minLearningRate().isEmpty()
                        || optimizer.schedule() != LearningRate.Schedule.CONSTANT,
                "auto where optimizer.schedule = constant, which never falls",
                optimizer.finalLearningRate(),
                "try optimizer.schedule = cosine, or optimizer.min-learning-rate = auto",
                "optimizer.min-learning-rate",
                "optimizer.schedule");
    }

    private void warmUpAndDecayFitTheRun() {
        OptimizerSection optimizer = config.optimizer();
        int steps = config.run().steps();
        int stable = steps - optimizer.warmupSteps();
        int decay = optimizer.decaySteps().orElse(0);
        require(
                optimizer.schedule() != LearningRate.Schedule.WSD || decay <= Math.max(0, stable),
                "at most the %d steps that follow the warm-up (run.steps = %d, optimizer.warmup-steps = %d)"
                        .formatted(Math.max(0, stable), steps, optimizer.warmupSteps()),
                decay,
                "try auto, a tenth of run.steps",
                "optimizer.decay-steps",
                "optimizer.warmup-steps",
                "run.steps");
    }

    private void framesFitTheLog() {
        powerOfTwo(config.dataPlane().udpTermLength(), "data-plane.udp-term-length");
        powerOfTwo(config.dataPlane().termLength(), "data-plane.term-length");
        int datagram = config.dataPlane().udpMtu().orElse(0);
        require(
                datagram % 32 == 0,
                "a multiple of 32",
                datagram,
                "try " + Math.max(512, datagram / 32 * 32),
                "data-plane.udp-mtu");
        long term = config.dataPlane().termLength().bytes();
        int mtu = config.dataPlane().mtu();
        require(
                mtu % 32 == 0,
                "a multiple of 32",
                mtu,
                "try " + Math.max(256, mtu / 32 * 32),
                "data-plane.mtu");
        require(
                mtu <= term / 8,
                "at most an eighth of data-plane.term-length = " + config.dataPlane().termLength(),
                mtu,
                "try a longer term or a smaller mtu",
                "data-plane.mtu",
                "data-plane.term-length");
    }

    private void emulatedLinksAreBetweenRanks() {
        DataPlaneSection plane = config.dataPlane();
        int ranks = config.grid().ranks();
        String known = "0 to %d, the ranks of this run".formatted(ranks - 1);
        List<Integer> placed =
                plane.emulateBetween().orElse(List.of()).stream().flatMap(List::stream).toList();
        require(
                placed.stream().allMatch(rank -> rank < ranks)
                        && placed.stream().distinct().count() == placed.size(),
                "ranks from %s, each at one site".formatted(known),
                plane.emulateBetween().orElse(List.of()),
                "try data-plane.emulate.between = all",
                "data-plane.emulate.between",
                "pipeline.stages",
                "parallel");
        for (LinkEntry link : plane.emulateLinks()) {
            require(
                    link.from() < ranks && link.to() < ranks && link.from() != link.to(),
                    "links between two ranks from " + known,
                    "from = %d, to = %d".formatted(link.from(), link.to()),
                    "try from = 0, to = 1",
                    "data-plane.emulate.links",
                    "pipeline.stages",
                    "parallel");
        }
        long directions =
                plane.emulateLinks().stream()
                        .map(link -> List.of(link.from(), link.to()))
                        .distinct()
                        .count();
        require(
                directions == plane.emulateLinks().size(),
                "each direction at most once",
                "%d entries for %d directions".formatted(plane.emulateLinks().size(), directions),
                "leave one of two entries out",
                "data-plane.emulate.links");
        boolean nccl = config.parallel().collectives() == ParallelSection.Collectives.NCCL;
        require(
                !nccl || !plane.emulated().areEmulated(),
                "ordered or auto where data-plane.emulate makes links slower",
                "nccl",
                "NCCL's own links cannot be made slower: try parallel.collectives = ordered",
                "parallel.collectives",
                "data-plane.emulate");
    }

    private void powerOfTwo(Bytes term, String key) {
        require(
                Long.bitCount(term.bytes()) == 1,
                "a power of two",
                term,
                "try " + new Bytes(Long.highestOneBit(term.bytes())),
                key);
    }

    private void require(
            boolean holds, String expected, Object got, String advice, String... keys) {
        if (!holds) {
            conflicts.add(new Conflict(List.of(keys), expected, got.toString(), advice));
        }
    }

    /** The multiples of {@code unit} next to {@code size}. */
    private static String around(int size, int unit) {
        int below = size / unit * unit;
        return below == 0 ? "" + unit : below + " or " + (below + unit);
    }

    private static List<Integer> evenly(int layers, int stages) {
        return IntStream.range(0, stages)
                .mapToObj(stage -> layers / stages + (stage < layers % stages ? 1 : 0))
                .toList();
    }

    private static int sum(List<Integer> values) {
        return values.stream().mapToInt(Integer::intValue).sum();
    }
}
