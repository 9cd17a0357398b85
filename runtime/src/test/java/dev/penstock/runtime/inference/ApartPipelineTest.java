package dev.penstock.runtime.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.launch.InProcessRun;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The stages of several processes, here in one: those between the first and the last have a feed of
 * their own, to which nobody submits anything.
 */
@Timeout(120)
class ApartPipelineTest {
    private static final ModelConfig MODEL = ModelConfig.gpt2(37, 16, 24, 4, 4, true);
    private static final PlainGpt WEIGHTS = PlainGpt.random(MODEL, 5);
    private static final JoiningTexts.Limits LIMITS = new JoiningTexts.Limits(3, 8, 40);
    private static final Sampling WILD = new Sampling(1, 0, 1, 11);
    private static final List<int[]> PROMPTS =
            List.of(
                    new int[] {3, 1, 4, 1, 5},
                    new int[] {9},
                    new int[] {2, 6, 5, 3, 5, 8, 9, 7},
                    new int[] {9, 3},
                    new int[] {2, 3, 8, 4, 6, 2});

    /** More texts than places, beyond the context, so that they join and leave, feed and drop. */
    @ParameterizedTest
    @CsvSource({"1, FLOAT32", "2, FLOAT32", "3, FLOAT32", "2, BF16", "3, INT8"})
    void aTextHasTheTokensOfGenerate(int ranks, HeldWeights held) {
        var pipeline = new ApartPipeline(MODEL.shape(), ranks, held, LIMITS);

        List<int[]> texts = continued(pipeline);

        assertThat(texts).containsExactlyElementsOf(generated(held));
    }

    private static List<int[]> generated(HeldWeights held) {
        var alone =
                new PipelineInference(
                        MODEL.shape(),
                        StagePartition.byFlops(MODEL.shape(), 1),
                        held,
                        WEIGHTS.source(),
                        _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)));
        return alone
                .run(InferenceRequest.of(PROMPTS, 24, WILD), (_, _) -> true, _ -> {})
                .texts()
                .stream()
                .map(Continuation::tokens)
                .toList();
    }

    private static List<int[]> continued(ApartPipeline pipeline) {
        JoiningTexts texts = pipeline.texts();
        RunPlan plan = pipeline.plan("apart-" + ProcessHandle.current().pid(), "test");
        List<BlockingQueue<Integer>> heard =
                PROMPTS.stream()
                        .<BlockingQueue<Integer>>map(_ -> new LinkedBlockingQueue<>())
                        .toList();
        var ended = new LinkedBlockingQueue<Continuation.End>();
        var stop = new AtomicReference<Runnable>();
        var outcome = CompletableFuture.supplyAsync(() -> run(pipeline, plan, texts, stop::set));
        List<TextRequest> requests =
                IntStream.range(0, PROMPTS.size())
                        .mapToObj(
                                i ->
                                        new TextRequest(
                                                PROMPTS.get(i), 24, WILD, i, OptionalInt.empty()))
                        .toList();
        texts.submit(
                requests,
                i ->
                        new TextProgress() {
                            @Override
                            public void onToken(int token) {
                                heard.get(i).add(token);
                            }

                            @Override
                            public void onEnd(Continuation.End end) {
                                ended.add(end);
                            }
                        });
        try {
            for (int i = 0; i < PROMPTS.size(); i++) {
                assertThat(ended.poll(20, TimeUnit.SECONDS))
                        .as(() -> "" + outcome.getNow(null))
                        .isEqualTo(Continuation.End.LENGTH);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        texts.close();
        stop.get().run();
        assertThat(outcome.orTimeout(60, TimeUnit.SECONDS).join())
                .isInstanceOf(RunOutcome.Completed.class);
        return heard.stream()
                .map(tokens -> tokens.stream().mapToInt(Integer::intValue).toArray())
                .toList();
    }

    private static RunOutcome run(
            ApartPipeline pipeline,
            RunPlan plan,
            JoiningTexts texts,
            Consumer<Runnable> onInterrupt) {
        var first = pipeline.stages(texts, WEIGHTS.source());
        var others = pipeline.stages(pipeline.texts(), WEIGHTS.source());
        return new InProcessRun(
                        () ->
                                EmbeddedDriver.start(
                                        DriverSettings.inSharedMemory(
                                                plan.runId(), 1 << 20, 4 * plan.ranks())),
                        driver ->
                                AeronDataPlane.start(
                                        AeronSettings.ipc(driver, 7).withTermLength(1 << 20)),
                        dataPlane ->
                                RankResources.of(
                                        plan,
                                        _ -> Devices.open(DeviceSettings.DEFAULTS.withThreads(1)),
                                        new SplitStages(first, others, 2 * plan.ranks() - 1),
                                        dataPlane,
                                        ApartPipeline.NO_CHECKPOINTS))
                .run(
                        end ->
                                PipelineSupervisor.create(
                                        plan,
                                        new RunListener() {},
                                        ApartPipeline.NO_CHECKPOINTS,
                                        end),
                        onInterrupt);
    }

    /** The stages of two processes. */
    private record SplitStages(StageProgramFactory first, StageProgramFactory others, int last)
            implements StageProgramFactory {
        @Override
        public StageProgram create(int stage, RankPlace place, Device device) {
            return (stage == 0 || stage == last ? first : others).create(stage, place, device);
        }

        @Override
        public StageMirror mirror(int stage, RankPlace place, Device device) {
            return first.mirror(stage, place, device);
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

    @Test
    void aSliceIsChosenFromBeforeTheNextOfItsTextIsFed() {
        for (int ranks = 1; ranks <= 4; ranks++) {
            for (int texts = 1; texts <= 5; texts++) {
                Schedule order =
                        InferenceOrder.thereAndBack(ranks, texts, Collections.nCopies(3, 1));
                List<String> ops =
                        order.program(0).ops().stream()
                                .map(op -> OpText.print(op, order.shape()))
                                .toList();
                for (int text = 0; text < texts; text++) {
                    for (int slice = 1; slice < 3; slice++) {
                        String chosen = "%dF%ds%d".formatted(2 * ranks - 1, text, slice - 1);
                        String fed = "0F%ds%d".formatted(text, slice);
                        assertThat(ops).contains(chosen, fed);
                        assertThat(ops.indexOf(chosen)).isLessThan(ops.indexOf(fed));
                    }
                }
            }
        }
    }

    @Test
    void whatInterruptsThePipelineEndsAllTextsUntilItBeginsAgain() {
        JoiningTexts texts =
                new ApartPipeline(MODEL.shape(), 2, HeldWeights.FLOAT32, LIMITS).texts();
        texts.begin(0, 1);
        var ends = new LinkedBlockingQueue<Continuation.End>();
        List<TextRequest> many =
                Collections.nCopies(
                        6,
                        new TextRequest(
                                new int[] {1}, 4, Sampling.greedy(), 0, OptionalInt.empty()));
        texts.submit(many, _ -> new Ends(ends));

        texts.interrupt("rank 1 died");

        assertThat(ends).hasSize(6).containsOnly(Continuation.End.STOPPED);
        assertThat(texts.isReady()).isFalse();
        assertThat(texts.interruption()).contains("rank 1 died");
        assertThatThrownBy(() -> texts.submit(many, _ -> new Ends(ends)))
                .isInstanceOf(IllegalStateException.class);
        texts.begin(0, 2);
        assertThat(texts.isReady()).isTrue();
        assertThat(texts.submit(many, _ -> new Ends(ends))).isPresent();
    }

    private record Ends(LinkedBlockingQueue<Continuation.End> ends) implements TextProgress {
        @Override
        public void onToken(int token) {}

        @Override
        public void onEnd(Continuation.End end) {
            ends.add(end);
        }
    }
}
