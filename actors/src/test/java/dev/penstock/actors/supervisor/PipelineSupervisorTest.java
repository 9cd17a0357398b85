package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import akka.actor.typed.ActorSystem;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(120)
class PipelineSupervisorTest {
    private static final double RATE = 0.01;

    private static ChainStage.Settings settings(int stages, int microBatches, int slices) {
        return new ChainStage.Settings(stages, microBatches, slices, false, RATE);
    }

    @ParameterizedTest
    @CsvSource({
        "1f1b,1,3,1,false", "1f1b,2,4,1,false", "1f1b,3,2,1,true", "gpipe,3,5,1,false",
        "terapipe,2,2,3,true", "seq1f1b,4,3,2,false", "seq1f1b,2,1,4,true", "gpipe,4,6,1,true"
    })
    void trainsToTheClosedForm(String kind, int stages, int microBatches, int slices, boolean tied)
            throws Exception {
        var settings = new ChainStage.Settings(stages, microBatches, slices, tied, RATE);
        var pipeline = new ChainPipeline(kind, settings);

        RunOutcome outcome = pipeline.run();

        assertThat(outcome).isEqualTo(new RunOutcome.Completed(5));
        List<Double> truth = ChainTruth.losses(settings, 5, 0);
        assertThat(pipeline.losses()).hasSize(5);
        for (int i = 0; i < 5; i++) {
            assertThat(pipeline.losses().get(i))
                    .isCloseTo(truth.get(i), within(1e-4 * truth.get(i)));
        }
    }

    /** Ranks of two stages each, backwards in one and in two parts, a pair, a tie in one rank. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                """
                ranks: 2
                chunks: 2
                placement: 0 1 1 0
                micro-batches: 2
                rank 0: 0F0 0F1 3F0 3I0 3W0 3F1 3B1 0I0 0B1 0W0
                rank 1: 1F0 2F0 1F1 (2F1;2B0)OVERLAP_F_B 1I0 2I1 1B1 1W0 2W1
                """,
                """
                ranks: 2
                chunks: 2
                micro-batches: 2
                rank 0: 0F0 0F1 2F0 2F1 2B0 2B1 0I0 0I1 0W0 0W1
                rank 1: 1F0 1F1 3F0 3B0 (3F1;1I0)OVERLAP_F_B 3I1 1B1 1W0 3W1
                """
            })
    void trainsStagesThatShareARank(String order) throws Exception {
        var settings = new ChainStage.Settings(4, 2, 1, true, RATE);
        var pipeline = new ChainPipeline(ScheduleText.parse(order), settings);

        RunOutcome outcome = pipeline.run();

        assertThat(outcome).isEqualTo(new RunOutcome.Completed(5));
        List<Double> truth = ChainTruth.losses(settings, 5, 0);
        for (int i = 0; i < 5; i++) {
            assertThat(pipeline.losses().get(i))
                    .isCloseTo(truth.get(i), within(1e-4 * truth.get(i)));
        }
    }

    @Test
    void clipsByTheGlobalNormOfAllRanks() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(3, 4, 1));
        pipeline.runSteps = new RunSteps(0, 4, 0.5, 0, 0, 0);

        pipeline.run();

        List<Double> truth = ChainTruth.losses(pipeline.settings, 4, 0.5);
        for (int i = 0; i < 4; i++) {
            assertThat(pipeline.losses().get(i))
                    .isCloseTo(truth.get(i), within(1e-4 * truth.get(i)));
        }
        assertThat(pipeline.steps).allSatisfy(step -> assertThat(step.clipFactor()).isLessThan(1));
    }

    @Test
    void evaluatesAtTheStartAtTheEndAndInBetweenWithoutTouchingTheWeights() throws Exception {
        var pipeline = new ChainPipeline("gpipe", settings(2, 2, 1));
        pipeline.runSteps = new RunSteps(0, 5, 0, 2, 3, 0);

        pipeline.run();

        assertThat(pipeline.evaluations).containsOnlyKeys(0L, 2L, 4L, 5L);
        double weights = 1 * 1.25;
        double mean = 0;
        for (int batch = 0; batch < 3; batch++) {
            mean +=
                    (ChainStage.data(StepKind.EVALUATE, batch, 0, 0)
                                    + ChainStage.data(StepKind.EVALUATE, batch, 1, 0))
                            / 2
                            / 3;
        }
        assertThat(pipeline.evaluations.get(0L)).isCloseTo(mean * weights, within(1e-5));
        List<Double> truth = ChainTruth.losses(pipeline.settings, 5, 0);
        assertThat(pipeline.losses().get(4)).isCloseTo(truth.get(4), within(1e-4 * truth.get(4)));
    }

    @Test
    void twoRunsGiveTheSameBits() throws Exception {
        var first = new ChainPipeline("1f1b", settings(3, 4, 1));
        var second = new ChainPipeline("1f1b", settings(3, 4, 1));

        first.run();
        second.run();

        assertThat(first.losses()).isEqualTo(second.losses());
    }

    @Test
    void savesWhenDueAndAtTheEndAndGoesOnWhenASaveFails() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.runSteps = new RunSteps(0, 5, 0, 0, 0, 2);
        pipeline.onSave = step -> failAt(2, step, "disk full");

        RunOutcome outcome = pipeline.run();

        assertThat(outcome).isEqualTo(new RunOutcome.Completed(5));
        assertThat(pipeline.published).containsExactly(4L, 5L);
        assertThat(pipeline.abandoned).containsExactly(2L);
        assertThat(pipeline.failedCheckpoints).singleElement().asString().contains("disk full");
    }

    @Test
    void anInterruptFinishesTheStepAndSaves() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.runSteps = new RunSteps(0, 1_000_000, 0, 0, 0, 1_000_000);
        pipeline.onStart = system -> system.tell(new PipelineSupervisor.Interrupt());
        pipeline.programs = (stage, _, device) -> new ChainStage(pipeline.settings, stage, device);

        RunOutcome outcome = pipeline.run();

        assertThat(outcome).isInstanceOf(RunOutcome.Interrupted.class);
    }

    @Test
    void anInterruptCutsAnEvaluationShort() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.runSteps = new RunSteps(0, 1, 0, 1, 1_000_000_000, 0);
        var started = new CompletableFuture<ActorSystem<PipelineSupervisor.Command>>();
        pipeline.onStart = started::complete;
        pipeline.programs =
                (stage, _, device) ->
                        new ForwardingStage(new ChainStage(pipeline.settings, stage, device)) {
                            @Override
                            public void beginStep(StepKind kind, long batch) {
                                started.join().tell(new PipelineSupervisor.Interrupt());
                                super.beginStep(kind, batch);
                            }
                        };

        RunOutcome outcome = pipeline.run();

        assertThat(outcome).isEqualTo(new RunOutcome.Interrupted(0));
        assertThat(pipeline.evaluations).isEmpty();
    }

    @Test
    void aFailingStageEndsTheRunWithItsPlace() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 4, 1));
        pipeline.programs = (stage, _, device) -> failingAt(pipeline.settings, stage, device, 3);

        RunOutcome outcome = pipeline.run();

        assertThat(outcome)
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("step 3", "stage 1", "micro-batch 2", "h.7"));
        assertThat(pipeline.steps).hasSize(2);
    }

    private static dev.penstock.actors.spi.StageProgram failingAt(
            ChainStage.Settings settings, int stage, Device device, long badStep) {
        return new ForwardingStage(new ChainStage(settings, stage, device)) {
            private long step;

            @Override
            public void beginStep(StepKind kind, long newStep) {
                step = newStep;
                super.beginStep(kind, newStep);
            }

            @Override
            public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
                if (step == badStep && stage == 1 && unit.microBatch() == 2) {
                    throw new NonFiniteException(step, unit, "h.7 attention");
                }
                super.forward(unit, input, output);
            }
        };
    }

    @Test
    void aSupervisorThatFailsEndsTheRunInsteadOfLeavingItWaiting() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.listener = report -> failAt(3, report.step(), "a listener that fails");

        RunOutcome outcome = pipeline.run();

        assertThat(outcome).isInstanceOf(RunOutcome.Failed.class);
        assertThat(((RunOutcome.Failed) outcome).reason())
                .contains("the supervisor failed", "a listener that fails");
    }

    private static void failAt(long bad, long step, String reason) {
        if (step == bad) {
            throw new IllegalStateException(reason);
        }
    }

    private static boolean ends(CountDownLatch latch, int seconds) {
        try {
            return latch.await(seconds, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** As on a disk that does not answer: the run is not to wait for its metrics. */
    @Test
    void aListenerThatHangsKeepsNoStepAndMissesNone() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.runSteps = new RunSteps(0, 5, 0, 0, 0, 1);
        var saved = new CountDownLatch(1);
        pipeline.onSave =
                step -> {
                    if (step == 5) {
                        saved.countDown();
                    }
                };
        pipeline.listener =
                _ -> assertThat(ends(saved, 30)).as("the run waits for its listener").isTrue();

        RunOutcome outcome = pipeline.run();

        assertThat(outcome).isEqualTo(new RunOutcome.Completed(5));
        assertThat(pipeline.steps).extracting(StepReport::step).containsExactly(1L, 2L, 3L, 4L, 5L);
    }

    /** Whoever watches it would take it for dead, and the run for failed. */
    @Test
    void aSupervisorDoesNotStopBeforeItsListenerKnowsEverything() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.listener =
                report ->
                        assertThat(report.step() == 5 && ends(pipeline.stopped, 1))
                                .as("the supervisor left its listener behind")
                                .isFalse();

        assertThat(pipeline.run()).isEqualTo(new RunOutcome.Completed(5));

        assertThat(pipeline.steps).extracting(StepReport::step).endsWith(5L);
    }

    @Test
    void aListenerThatNeverComesBackIsGivenUp() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        var never = new CountDownLatch(1);
        pipeline.listener = report -> assertThat(report.step() < 3 || ends(never, 600)).isTrue();
        var usual = Timeouts.DEFAULT;
        pipeline.timeouts =
                new Timeouts(
                        usual.lease(),
                        usual.stallReport(),
                        usual.stallLimit(),
                        usual.start(),
                        Duration.ofSeconds(2));

        assertThat(pipeline.run()).isEqualTo(new RunOutcome.Completed(5));

        assertThat(pipeline.steps).extracting(StepReport::step).containsExactly(1L, 2L);
    }

    @Test
    void aStageThatCannotStartEndsTheRun() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.programs =
                (stage, _, device) -> {
                    if (stage == 1) {
                        throw new IllegalStateException("no room for stage 1");
                    }
                    return new ChainStage(pipeline.settings, stage, device);
                };

        RunOutcome outcome = pipeline.run();

        assertThat(outcome)
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("rank 1", "no room"));
    }

    @Test
    void aNodeThatBuiltAnotherPlanIsRefusedWithBothHashes() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 2, 1));
        pipeline.planOfTheNode =
                plan ->
                        new RunPlan(
                                plan.runId(),
                                "another-model",
                                plan.training(),
                                plan.evaluation(),
                                plan.inFlight(),
                                plan.steps(),
                                plan.timeouts(),
                                plan.mirrors());

        RunOutcome outcome = pipeline.run();

        assertThat(outcome)
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed ->
                                assertThat(failed.reason())
                                        .contains("node test built another plan")
                                        .contains("supervisor's hash " + pipeline.plan().hash())
                                        .contains("own another-model"));
        assertThat(pipeline.steps).isEmpty();
    }

    @Test
    void aLostFrameIsExplainedAndEndsTheRun() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(3, 4, 1));
        pipeline.timeouts =
                new Timeouts(
                        Duration.ofSeconds(3),
                        Duration.ofMillis(400),
                        Duration.ofMillis(1500),
                        Duration.ofSeconds(30),
                        Duration.ofSeconds(10));
        pipeline.dataPlane = DroppingDataPlane::new;

        RunOutcome outcome = pipeline.run();

        assertThat(pipeline.stalls).isNotEmpty();
        assertThat(pipeline.stalls.getFirst())
                .contains("1RECV_F2 waits for 0SEND_F2 of rank 0 (stage 0)", ">1RECV_F2<")
                .contains("!1RECV_F2", "?0SEND_F2", "! is blocked, ? is what it waits for");
        assertThat(outcome)
                .isInstanceOfSatisfying(
                        RunOutcome.Failed.class,
                        failed -> assertThat(failed.reason()).contains("nothing has moved"));
    }

    @Test
    void theHeapStaysQuietInASteadyStep() throws Exception {
        var pipeline = new ChainPipeline("1f1b", settings(2, 8, 1));
        pipeline.runSteps = new RunSteps(0, 60, 0, 0, 0, 0);

        pipeline.run();

        int ops = pipeline.plan().training().program(0).ops().size();
        long bytes = pipeline.steps.getLast().ranks().getFirst().allocatedHeapBytes();
        assertThat(bytes / ops).isLessThan(16 * 1024);
    }

    /** Says that the activation of micro-batch 2 for stage 1 was sent, and drops it. */
    private record DroppingDataPlane(DataPlane real) implements DataPlane {
        @Override
        public Endpoint open(Opening opening, FrameListener listener) {
            return new DroppingEndpoint(real.open(opening, listener), new AtomicLong());
        }

        @Override
        public PeerAddress address() {
            return real.address();
        }

        @Override
        public boolean keepsSentTensors() {
            return real.keepsSentTensors();
        }

        @Override
        public void close() {
            real.close();
        }
    }

    private record DroppingEndpoint(Endpoint real, AtomicLong dropped) implements Endpoint {
        @Override
        public OfferResult offer(FrameKey key, MemorySegment tensor) {
            boolean lost =
                    key.channel().kind() == FrameKind.ACTIVATION
                            && key.channel().stage() == 1
                            && key.microBatch() == 2
                            && key.step() == 2;
            if (lost) {
                dropped.incrementAndGet();
            }
            return lost ? OfferResult.SENT : real.offer(key, tensor);
        }

        @Override
        public long verified(ChannelKey channel) {
            return real.verified(channel) + dropped.get();
        }

        @Override
        public int credits(ChannelKey channel) {
            return real.credits(channel);
        }

        @Override
        public int arrived(FrameKey key) {
            return real.arrived(key);
        }

        @Override
        public int take(FrameKey key) {
            return real.take(key);
        }

        @Override
        public void release(ChannelKey channel, int slot) {
            real.release(channel, slot);
        }

        @Override
        public String describe() {
            return real.describe();
        }

        @Override
        public void close() {
            real.close();
        }
    }
}
