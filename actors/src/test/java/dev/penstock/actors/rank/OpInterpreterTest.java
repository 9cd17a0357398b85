package dev.penstock.actors.rank;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.dataplane.direct.TransferRegistry;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.simulate.InFlight;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Ranks of one thread, with stages that only write down what they are asked for. */
class OpInterpreterTest {
    private static final FrameListener NOBODY =
            new FrameListener() {
                @Override
                public void onFrame(FrameKey key) {}

                @Override
                public void onCredit(ChannelKey channel) {}

                @Override
                public void onFailure(DataPlaneException failure) {
                    throw failure;
                }
            };

    /** A collective that is done after so many looks. */
    private static final class Countdown implements Collective {
        private int left;

        private Countdown(int looks) {
            left = looks;
        }

        @Override
        public boolean advance() {
            return --left <= 0;
        }

        @Override
        public String describe() {
            return "a sum of " + left;
        }
    }

    private final List<AutoCloseable> opened = new ArrayList<>();
    private final MemoryLinks links = new MemoryLinks();
    private final List<List<String>> calls = new ArrayList<>();
    private final List<RecordingStage> stages = new ArrayList<>();
    private final List<OpInterpreter> ranks = new ArrayList<>();
    private StepKind kind = StepKind.TRAIN;

    @AfterEach
    void closeDevices() throws Exception {
        for (AutoCloseable each : opened.reversed()) {
            each.close();
        }
    }

    private static RunPlan plan(Schedule training, Schedule evaluation) {
        InFlight inFlight = InFlight.auto(training).max(InFlight.auto(evaluation));
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        for (int stage = 1; stage < training.placement().stages(); stage++) {
            int before = stage - 1;
            capacities.put(
                    new ChannelKey(FrameKind.ACTIVATION, before, stage),
                    inFlight.capacity(new Channel(before, stage)));
            capacities.put(
                    new ChannelKey(FrameKind.GRADIENT, stage, before),
                    inFlight.capacity(new Channel(stage, before)));
        }
        return new RunPlan(
                "test",
                "hash",
                training,
                evaluation,
                capacities,
                new RunSteps(0, 1, 0, 0, 0, 0),
                Timeouts.DEFAULT,
                false);
    }

    private void open(Schedule computations) {
        open(plan(Lowering.lower(computations), Lowering.lowerForwardOnly(computations)));
    }

    private void open(RunPlan plan) {
        for (int rank = 0; rank < plan.ranks(); rank++) {
            List<String> rankCalls = new ArrayList<>();
            calls.add(rankCalls);
            Map<Integer, StageProgram> held = new HashMap<>();
            for (int stage : plan.stagesOf(rank)) {
                var made = new RecordingStage(stage, rankCalls);
                held.put(stage, made);
                stages.add(made);
            }
            Device device =
                    Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
            opened.add(device);
            var scope = device.memory().child("boundary", Long.MAX_VALUE);
            opened.add(scope);
            var buffers =
                    new BoundaryBuffers(
                            rank, plan, held, scope, device.kernels(), CodingState.NONE, false);
            links.open(buffers.inbound());
            List<Integer> homes = IntStream.range(0, plan.ranks()).boxed().toList();
            var direct = new DirectTransfers(new TransferRegistry(false), rank, 1, homes, NOBODY);
            opened.add(direct);
            buffers.open(direct);
            ranks.add(
                    new OpInterpreter(
                            rank,
                            plan,
                            kind,
                            held,
                            Map.of(),
                            buffers,
                            links.endpoint(),
                            direct,
                            RankFaults.NONE));
        }
    }

    /** One rank that holds stage 0 of a pipeline of one and runs these ops. */
    private void openAlone(String ops) {
        var shape = PipelineShape.of(1, 4);
        List<Op> program =
                Arrays.stream(ops.split(" ")).map(op -> OpText.parse(op).orElseThrow()).toList();
        var schedule =
                new Schedule(
                        "test", shape, Placement.loop(1, 1), List.of(new RankProgram(0, program)));
        open(plan(schedule, schedule));
        ranks.getFirst().begin(1, List.of());
    }

    private Progress advance(int rank) {
        ranks.get(rank).moveCollectives();
        return ranks.get(rank).advance();
    }

    /** Runs one rank as far as it comes alone, and returns what it then waits for. */
    private Progress advanceFully(int rank) {
        Progress progress = advance(rank);
        while (progress == Progress.DONE && !ranks.get(rank).isFinished()) {
            progress = advance(rank);
        }
        return progress;
    }

    /** Runs a pass of all ranks in turns; at each turn a rank goes as far as it comes. */
    private void runPass(long pass) {
        ranks.forEach(rank -> rank.begin(pass, List.of()));
        while (!ranks.stream().allMatch(OpInterpreter::isFinished)) {
            int before = ranks.stream().mapToInt(OpInterpreter::position).sum();
            for (int rank = 0; rank < ranks.size(); rank++) {
                advanceFully(rank);
            }
            assertThat(ranks.stream().mapToInt(OpInterpreter::position).sum())
                    .as("ops done in a round in which every rank had its turn")
                    .isGreaterThan(before);
        }
    }

    private static List<String> computations(Schedule schedule, int rank) {
        var shape = schedule.shape();
        return schedule.program(rank).ops().stream()
                .flatMap(op -> op.computations().stream())
                .map(op -> OpText.print(op, shape))
                .toList();
    }

    static List<String> families() {
        return Generators.kinds();
    }

    @ParameterizedTest
    @MethodSource("families")
    void everyRankComputesInTheOrderOfItsProgramAndTheLinksComeToRest(String family) {
        int ranks = 2;
        int chunks = Generators.kind(family).chunks() == ScheduleKind.Chunks.ONE ? 1 : 2;
        var compute = Generators.generate(family, new PipelineShape(ranks, chunks, 4, List.of(1)));
        open(compute);

        for (long pass = 1; pass <= 3; pass++) {
            calls.forEach(List::clear);
            runPass(pass);

            for (int rank = 0; rank < ranks; rank++) {
                assertThat(calls.get(rank)).isEqualTo(computations(compute, rank));
            }
            assertThat(links.isAtRest()).isTrue();
        }
    }

    @Test
    void anEvaluationNeedsItsInputsNoLongerThanTheForward() {
        kind = StepKind.EVALUATE;
        open(Generators.generate("gpipe", PipelineShape.of(2, 6)));

        for (long pass = 1; pass <= 3; pass++) {
            runPass(pass);
        }

        assertThat(calls.get(1)).hasSize(18).allMatch(call -> call.startsWith("1F"));
        assertThat(links.isAtRest()).isTrue();
    }

    @Test
    void aReceiveWaitsForItsFrameAndNothingBehindItRuns() {
        open(Generators.generate("1f1b", PipelineShape.of(2, 2)));
        ranks.forEach(rank -> rank.begin(1, List.of()));

        Progress alone = advanceFully(1);

        assertThat(alone).isEqualTo(Progress.WAITS_FOR_FRAME);
        assertThat(ranks.get(1).position()).isZero();
        assertThat(calls.get(1)).isEmpty();

        advanceFully(0);
        advanceFully(1);

        assertThat(calls.get(1)).startsWith("1F0", "1B0");
    }

    @Test
    void aSendWaitsForCreditWhileTheReceiverTakesNothing() {
        var compute = Generators.generate("gpipe", PipelineShape.of(2, 4));
        Schedule training = Lowering.lower(compute);
        RunPlan roomy = plan(training, Lowering.lowerForwardOnly(compute));
        Map<ChannelKey, Integer> one = new HashMap<>();
        roomy.inFlight().keySet().forEach(channel -> one.put(channel, 1));
        open(
                new RunPlan(
                        "test",
                        "hash",
                        training,
                        roomy.evaluation(),
                        one,
                        roomy.steps(),
                        roomy.timeouts(),
                        false));
        ranks.forEach(rank -> rank.begin(1, List.of()));

        Progress progress = advanceFully(0);

        assertThat(progress).isEqualTo(Progress.WAITS_FOR_CREDIT);
        assertThat(calls.getFirst()).containsExactly("0F0", "0F1");
        assertThat(ranks.getFirst().current()).isEqualTo(OpText.parse("0SEND_F1").orElseThrow());
    }

    @Test
    void aBackPressuredTensorIsOfferedAgainAndCountedOnce() {
        open(Generators.generate("gpipe", PipelineShape.of(2, 1)));
        ranks.forEach(rank -> rank.begin(1, List.of()));
        links.nextAnswers.addAll(List.of(OfferResult.NOT_CONNECTED, OfferResult.BACK_PRESSURED));

        assertThat(advance(0)).isEqualTo(Progress.DONE);
        assertThat(advance(0)).isEqualTo(Progress.WAITS_FOR_LINK);
        assertThat(advance(0)).isEqualTo(Progress.WAITS_FOR_LINK);
        assertThat(advance(0)).isEqualTo(Progress.DONE);

        assertThat(links.offers).isEqualTo(3);
        assertThat(ranks.getFirst().sent().activations()).isEqualTo(2 * 3 * Float.BYTES);
    }

    @Test
    void aBrokenLinkEndsThePassWithItsReason() {
        open(Generators.generate("gpipe", PipelineShape.of(2, 1)));
        ranks.forEach(rank -> rank.begin(1, List.of()));
        links.nextAnswers.add(new OfferResult.Failed("the log is gone"));
        advance(0);

        assertThatThrownBy(() -> advance(0))
                .isInstanceOf(DataPlaneException.class)
                .hasMessageContaining("the log is gone");
    }

    @Test
    void stagesOfOneRankHandTensorsOverWithoutAnOffer() {
        open(Generators.generate("interleaved-1f1b", new PipelineShape(1, 3, 2, List.of(1))));

        runPass(1);
        runPass(2);

        assertThat(links.offers).isZero();
        assertThat(calls.getFirst()).contains("2F1", "0B1");
    }

    @Test
    void anOpOfAStageThatTheRankDoesNotHoldIsNamed() {
        openAlone("3W0");

        assertThatThrownBy(() -> advance(0))
                .hasMessage("rank 0 runs an op of stage 3, which it does not hold (it holds [0])");
    }

    @Test
    void aUnitThatIsRecomputedIsParkedAfterItsForward() {
        openAlone("0F0 0F1 0B1 0R0 0B0");

        advanceFully(0);

        assertThat(calls.getFirst()).containsExactly("0F0", "0P0", "0F1", "0B1", "0R0", "0B0");
    }

    @Test
    void aSumRunsBesideForwardsAndHoldsUpTheNextBackwardOfItsStage() {
        openAlone("0F0 0F1 0F2 0B0 0REDUCE_GRAD 0F3 0B1");
        stages.getFirst().reduction = new Countdown(4);

        assertThat(advanceFully(0)).isEqualTo(Progress.WAITS_FOR_REPLICAS);

        assertThat(calls.getFirst()).containsExactly("0F0", "0F1", "0F2", "0B0", "0REDUCE", "0F3");
        assertThat(ranks.getFirst().collectives().describe()).startsWith("a sum of");
        assertThat(advanceFully(0)).isEqualTo(Progress.DONE);
        assertThat(calls.getFirst()).endsWith("0F3", "0B1");
    }

    @Test
    void aPassIsFinishedOnlyWhenItsLastSumIs() {
        openAlone("0F0 0B0 0REDUCE_GRAD");
        stages.getFirst().reduction = new Countdown(4);

        Progress progress = advanceFully(0);

        assertThat(progress).isEqualTo(Progress.WAITS_FOR_REPLICAS);
        assertThat(ranks.getFirst().current()).isNull();
        assertThat(ranks.getFirst().isFinished()).isFalse();
        while (!ranks.getFirst().isFinished()) {
            advance(0);
        }
        assertThat(ranks.getFirst().collectives().areUnderWay()).isFalse();
    }

    @Test
    void aGatherBringsTheLayersInTheDirectionOfTheComputationThatFollows() {
        openAlone("0UNSHARD 0F0 0RESHARD 0UNSHARD 0B0 0RESHARD");
        stages.getFirst().gather = new Countdown(2);

        advanceFully(0);

        assertThat(stages.getFirst().rising).containsExactly(true, false);
        assertThat(calls.getFirst())
                .containsExactly("0GATHER", "0F0", "0RELEASE", "0GATHER", "0B0", "0RELEASE");
    }

    @Test
    void everyOpHasATimeAndNoneBeginsBeforeTheOneBeforeItHasEnded() {
        open(Generators.generate("1f1b", PipelineShape.of(2, 4)));

        long before = System.nanoTime();
        runPass(1);
        PassTimes times = ranks.get(1).times();

        assertThat(times.starts()).hasSameSizeAs(times.ends()).hasSize(16);
        long last = before;
        for (int op = 0; op < times.starts().length; op++) {
            assertThat(times.starts()[op] - last).as("op %d", op).isGreaterThanOrEqualTo(0);
            assertThat(times.ends()[op] - times.starts()[op]).isGreaterThanOrEqualTo(0);
            last = times.ends()[op];
        }
    }
}
