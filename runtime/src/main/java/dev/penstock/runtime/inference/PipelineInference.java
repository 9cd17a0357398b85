package dev.penstock.runtime.inference;

import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.runtime.checkpoint.ModelTensors;
import dev.penstock.runtime.evaluation.Score;
import dev.penstock.runtime.evaluation.Window;
import dev.penstock.runtime.launch.InProcessRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.model.generation.InferenceStages;
import dev.penstock.runtime.model.generation.TextFeed;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.Schedule;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Continues texts in a pipeline all of whose stages are in this process, each on a device and a
 * thread of its own: the actors, the data plane and the interpreter of training, for one pass
 * without backwards. Can be used repeatedly, each time with stages of its own.
 *
 * @param weights all parameters; read by several threads
 * @param devices one for each stage
 * @param held how weights are held; narrower than F32 only where the host computes
 */
public record PipelineInference(
        ModelShape shape,
        StagePartition partition,
        Precision precision,
        ParameterSource weights,
        DeviceFactory devices,
        HeldWeights held) {
    private static final Logger LOG = LoggerFactory.getLogger(PipelineInference.class);

    /**
     * Length of a prompt's slices: the stages work on them in parallel, and attention loses little.
     */
    private static final int SLICE_TOKENS = 128;

    /** The smallest term length that holds the largest chunks of frames. */
    private static final int TERM_BYTES = 1 << 20;

    /**
     * In one process no rank dies alone; a machine that is busy with other work does not count as a
     * death.
     */
    private static final Timeouts TIMEOUTS =
            new Timeouts(
                    Duration.ofSeconds(60),
                    Duration.ofSeconds(20),
                    Duration.ofSeconds(120),
                    Duration.ofMinutes(10),
                    Duration.ofSeconds(30));

    /** Nothing is trained, so there is nothing to save. */
    private static final CheckpointStore NO_CHECKPOINTS =
            new CheckpointStore() {
                @Override
                public ShardFile writeShard(
                        long step, int epoch, int stage, RankPlace place, List<NamedTensor> state) {
                    throw new UnsupportedOperationException("inference saves nothing");
                }

                @Override
                public void publish(long step, int epoch, List<ShardFile> shards) {
                    throw new UnsupportedOperationException("inference saves nothing");
                }
            };

    /** One whose weights are held in F32. */
    public PipelineInference(
            ModelShape shape,
            StagePartition partition,
            Precision precision,
            ParameterSource weights,
            DeviceFactory devices) {
        this(shape, partition, precision, weights, devices, HeldWeights.FLOAT32);
    }

    /** One that multiplies as it holds its weights. */
    public PipelineInference(
            ModelShape shape,
            StagePartition partition,
            HeldWeights held,
            ParameterSource weights,
            DeviceFactory devices) {
        this(shape, partition, held.precision(), weights, devices, held);
    }

    /**
     * The result of a request.
     *
     * @param outcome whether the pipeline worked
     * @param texts entry i continues prompt i, possibly cut short
     */
    public record Result(RunOutcome outcome, List<Continuation> texts) {}

    /**
     * Continues all texts and returns when they have ended.
     *
     * @param listener notified of tokens as they are chosen
     * @param onInterrupt given the action that ends all texts at the user's request
     * @throws IllegalArgumentException if a prompt has tokens outside the model's vocabulary
     */
    public Result run(
            InferenceRequest request, TokenListener listener, Consumer<Runnable> onInterrupt) {
        request.prompts().forEach(this::requireKnownTokens);
        var texts = new Texts(request, partition.stages(), shape, SLICE_TOKENS, listener);
        RunPlan plan = plan(InferenceOrder.of(partition.stages(), texts), 1);
        return new Result(run(plan, texts, onInterrupt), texts.continuations());
    }

    /**
     * Makes room for texts that join while the pipeline works.
     *
     * @param limits of texts and of the queue
     */
    public JoiningTexts joiningTexts(JoiningTexts.Limits limits) {
        return new JoiningTexts(shape, partition.stages(), SLICE_TOKENS, limits);
    }

    /**
     * Continues texts that join and leave while the pipeline works, pass after pass, until it is
     * interrupted or fails. A text has the same tokens as by {@link #run}, whatever is beside it,
     * as far as the device multiplies rows by themselves.
     *
     * @param texts made by {@link #joiningTexts}; closed when this returns
     * @param onInterrupt given the action that ends it at the user's request
     */
    public RunOutcome serve(JoiningTexts texts, Consumer<Runnable> onInterrupt) {
        try (texts) {
            Schedule order =
                    InferenceOrder.of(partition.stages(), texts.microBatches(), texts.sliceRows());
            return run(plan(order, Integer.MAX_VALUE), texts, onInterrupt);
        }
    }

    /** Makes a pipeline of one stage, on a device as the ranks of a run have it. */
    public static PipelineInference of(RunAssembly run, ModelTensors weights) {
        ModelShape shape = run.model().shape();
        return new PipelineInference(
                shape,
                StagePartition.byFlops(shape, 1),
                run.model().precision(),
                weights::fill,
                _ -> run.openDevice());
    }

    /**
     * What became of windows that were scored.
     *
     * @param outcome whether the pipeline worked
     * @param scores entry i is that of window i; empty if the user ended it, or it failed
     */
    public record Scores(RunOutcome outcome, List<Score> scores) {}

    /**
     * Scores windows and returns when all are. A score has the same bits whatever is scored beside
     * it and however many stages there are, as far as the device multiplies rows by themselves.
     *
     * @param progress is told how many windows are scored, on the last stage's thread
     * @param onInterrupt given the action that ends it at the user's request
     * @throws IllegalArgumentException if a window has tokens outside the model's vocabulary
     */
    public Scores score(
            List<Window> windows, IntConsumer progress, Consumer<Runnable> onInterrupt) {
        if (windows.isEmpty()) {
            return new Scores(new RunOutcome.Completed(0), List.of());
        }
        windows.stream().map(Window::row).distinct().forEach(this::requireKnownTokens);
        var feed = new ScoringFeed(windows, partition.stages(), progress);
        Schedule order =
                InferenceOrder.of(partition.stages(), feed.microBatches(), feed.sliceRows());
        RunOutcome outcome = run(plan(order, feed.passes()), feed, onInterrupt);
        return new Scores(outcome, feed.scores());
    }

    private RunOutcome run(RunPlan plan, TextFeed texts, Consumer<Runnable> onInterrupt) {
        var stages =
                new InferenceStages(
                        shape,
                        partition,
                        precision,
                        held,
                        texts,
                        new FiniteWeights(weights),
                        false);
        return new InProcessRun(
                        () ->
                                EmbeddedDriver.start(
                                        DriverSettings.inSharedMemory(
                                                plan.runId(), TERM_BYTES, 2 * plan.ranks())),
                        driver ->
                                AeronDataPlane.start(
                                        AeronSettings.ipc(driver, plan.runId().hashCode())
                                                .withTermLength(TERM_BYTES)),
                        dataPlane ->
                                RankResources.of(plan, devices, stages, dataPlane, NO_CHECKPOINTS))
                .run(
                        ended ->
                                PipelineSupervisor.create(
                                        plan, new Stalls(), NO_CHECKPOINTS, ended),
                        end ->
                                onInterrupt.accept(
                                        () -> {
                                            texts.stop();
                                            end.run();
                                        }));
    }

    private void requireKnownTokens(int[] row) {
        for (int token : row) {
            if (token < 0 || token >= shape.vocabulary()) {
                throw new IllegalArgumentException(
                        "the model's vocabulary has tokens 0 to %d, but a text has %d"
                                .formatted(shape.vocabulary() - 1, token));
            }
        }
    }

    /** Like an evaluation: its order is used in both places, and no step is trained. */
    private static RunPlan plan(Schedule order, int passes) {
        int stages = order.shape().stages();
        return new RunPlan(
                RunOptions.newRunId("inference"),
                "inference",
                order,
                order,
                RankGrid.pipeline(stages),
                InferenceOrder.inFlight(stages),
                new RunSteps(0, 0, 0, 1, passes, 0),
                TIMEOUTS,
                false,
                false,
                Long.MAX_VALUE); // one rank per stage sums nothing
    }

    private static final class Stalls implements RunListener {
        @Override
        public void onStall(String report) {
            LOG.warn("{}", report);
        }
    }
}
