package dev.penstock.actors.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.fault.Fault.Place;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FaultInjectorTest {
    private static final Instant NOW = Instant.parse("2026-01-02T03:04:05.678901Z");
    private static final Op FORWARD_3 = new Op.Forward(new WorkUnit(1, 3, 0));
    private static final Op FORWARD_4 = new Op.Forward(new WorkUnit(1, 4, 0));
    private static final Op BACKWARD_3 = new Op.Backward(new WorkUnit(1, 3, 0));

    @TempDir Path folder;

    private final List<String> harmed = new ArrayList<>();

    @Test
    void aRankIsKilledAtItsOpOfItsStepAndNowhereElse() {
        var kill = new Fault.KillRank(1, 7, new Place.BeforeOp(FORWARD_3));

        assertThat(injector(kill).forRank(0, RankPlace.single(0), List.of(0)))
                .isSameAs(RankFaults.NONE);
        RankFaults rank = injector(kill).forRank(1, RankPlace.single(1), List.of(1));
        pass(rank, StepKind.TRAIN, 6);
        pass(rank, StepKind.EVALUATE, 7);
        assertThat(harmed).isEmpty();

        rank.beginPass(StepKind.TRAIN, 7);
        rank.beforeOp(FORWARD_4);
        assertThat(harmed).isEmpty();
        rank.beforeOp(FORWARD_3);

        assertThat(harmed).containsExactly("kill");
    }

    @Test
    void anEventHappensOnceThoughItsStepIsDoneAgainByAnotherProcess() {
        var kill = new Fault.KillRank(1, 7, new Place.At(StepMoment.OPTIMIZER));
        injector(kill).forRank(1, RankPlace.single(1), List.of(1)).at(StepMoment.OPTIMIZER, 7);

        injector(kill).forRank(1, RankPlace.single(1), List.of(1)).at(StepMoment.OPTIMIZER, 7);

        assertThat(harmed).containsExactly("kill");
        assertThat(markers().firedAt(0)).contains(NOW);
        assertThat(markers().firedAt(1)).isEmpty();
    }

    @Test
    void twoFaultsOfTheSameKindAreTwoEvents() {
        var first = new Fault.KillRank(1, 7, new Place.Begin());
        var second = new Fault.KillRank(1, 7, new Place.BeforeOp(BACKWARD_3));

        pass(
                injector(first, second).forRank(1, RankPlace.single(1), List.of(1)),
                StepKind.TRAIN,
                7);
        pass(
                injector(first, second).forRank(1, RankPlace.single(1), List.of(1)),
                StepKind.TRAIN,
                7);

        assertThat(harmed).containsExactly("kill", "kill");
    }

    @Test
    void halfOfAnOverlappedPairIsAPlace() {
        var forward = new Op.Forward(new WorkUnit(1, 4, 0));
        var backward = new Op.Backward(new WorkUnit(1, 3, 0));
        var kill = new Fault.KillRank(1, 1, new Place.BeforeOp(backward));
        RankFaults rank = injector(kill).forRank(1, RankPlace.single(1), List.of(1));

        rank.beginPass(StepKind.TRAIN, 1);
        rank.beforeOp(new Op.Overlapped(forward, backward));

        assertThat(harmed).containsExactly("kill");
    }

    @Test
    void aPauseLastsAsLongAsItSays() {
        var pause = new Fault.PauseRank(0, Duration.ofSeconds(4), 3, new Place.Begin());

        pass(injector(pause).forRank(0, RankPlace.single(0), List.of(0)), StepKind.TRAIN, 3);

        assertThat(harmed).containsExactly("pause PT4S");
    }

    @Test
    void aSlowStageTakesItsFactorOfTimeInItsStepsOnly() {
        var slow =
                new Fault.SlowStage(1, OptionalInt.empty(), 3, Duration.ZERO, new StepSpan(2, 4));
        RankFaults rank = injector(slow).forRank(1, RankPlace.single(1), List.of(1));

        rank.beginPass(StepKind.TRAIN, 3);
        long start = System.nanoTime() - 10_000_000;
        rank.afterComputation(FORWARD_3, start);
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(30_000_000);

        rank.beginPass(StepKind.TRAIN, 5);
        long aDayAgo = System.nanoTime() - Duration.ofDays(1).toNanos();
        rank.afterComputation(FORWARD_3, aDayAgo); // would take two days
    }

    @Test
    void aSlowStageTakesItsLeastHoweverShortTheComputationIs() {
        var slow =
                new Fault.SlowStage(
                        1, OptionalInt.empty(), 1, Duration.ofMillis(30), new StepSpan(2, 4));
        RankFaults rank = injector(slow).forRank(1, RankPlace.single(1), List.of(1));
        rank.beginPass(StepKind.TRAIN, 3);

        long start = System.nanoTime();
        rank.afterComputation(FORWARD_3, start);
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(30_000_000);

        long aDayAgo = System.nanoTime() - Duration.ofDays(1).toNanos();
        rank.afterComputation(FORWARD_3, aDayAgo); // longer than its least: would take a day more
    }

    @Test
    void aStageMayBeSlowOfOneReplicaOnly() {
        RankGrid grid = new RankGrid(2, 1, 1, 3);
        var slow = new Fault.SlowStage(1, OptionalInt.of(2), 3, Duration.ZERO, new StepSpan(2, 4));

        assertThat(
                        IntStream.range(0, grid.ranks())
                                .filter(
                                        rank ->
                                                !injector(slow)
                                                        .forRank(
                                                                rank,
                                                                grid.placeOf(rank),
                                                                List.of(rank % 2))
                                                        .equals(RankFaults.NONE)))
                .containsExactly(5);
    }

    /**
     * 2 stages x 2 shards x 2 replicas: ranks 2 and 3 are stage 1 of the first, 6 and 7 of the
     * other.
     */
    @Test
    void aNanGoesIntoTheReplicaThatIsNamed() {
        RankGrid grid = new RankGrid(2, 2, 1, 2);
        var nan = new Fault.InjectNan(1, 1, 3, 7);

        List<Integer> harmedRanks =
                IntStream.range(0, grid.ranks())
                        .filter(
                                rank -> {
                                    RankPlace place = grid.placeOf(rank);
                                    List<Integer> stages = List.of(place.pipeline());
                                    return !injector(nan)
                                            .forRank(rank, place, stages)
                                            .equals(RankFaults.NONE);
                                })
                        .boxed()
                        .toList();

        assertThat(harmedRanks).containsExactly(6);
        assertThat(nan.describe())
                .isEqualTo(
                        "NaN into the activation of stage 1, replica 1, micro-batch 3 of step 7");
    }

    @Test
    void theDiskIsFullOnceAfterItsBytes() throws Exception {
        SaveFaults disk = injector(new Fault.FailDisk(8, 1000)).forSaves();

        disk.beforeWrite(4, 0, 5000);
        disk.beforeWrite(8, 0, 1000);
        assertThatThrownBy(() -> disk.beforeWrite(8, 1000, 1))
                .isInstanceOf(IOException.class)
                .hasMessage("No space left on device (injected after 1000 bytes)");
        assertThatCode(() -> disk.beforeWrite(8, 1000, 1)).doesNotThrowAnyException();
    }

    @Test
    void faultsAreSaidInWords() {
        assertThat(
                        List.of(
                                        new Fault.KillRank(2, 7, new Place.BeforeOp(FORWARD_3)),
                                        new Fault.KillRank(2, 7, new Place.At(StepMoment.READY)),
                                        new Fault.PauseRank(
                                                1, Duration.ofMillis(4500), 3, new Place.Begin()),
                                        new Fault.HarmFrames(
                                                FrameHarm.DROP,
                                                0.01,
                                                5,
                                                Duration.ZERO,
                                                new StepSpan(3, 9)),
                                        new Fault.HarmFrames(
                                                FrameHarm.DELAY,
                                                0.5,
                                                5,
                                                Duration.ofMillis(20),
                                                StepSpan.only(3)),
                                        new Fault.TearCheckpoint(4, SavePoint.MANIFEST_WRITTEN),
                                        new Fault.SlowStage(
                                                2,
                                                OptionalInt.empty(),
                                                3,
                                                Duration.ZERO,
                                                new StepSpan(1, 5)),
                                        new Fault.SlowStage(
                                                2,
                                                OptionalInt.of(1),
                                                1,
                                                Duration.ofMillis(20),
                                                new StepSpan(1, 5)))
                                .stream()
                                .map(Fault::describe))
                .containsExactly(
                        "kill rank 2 at op 1F3 of step 7",
                        "kill rank 2 at ready of step 7",
                        "pause rank 1 for 4.5 s at its first op of step 3",
                        "drop 1 % of the frames in steps 3-9 (seed 5)",
                        "delay 50 % of the frames by 0.02 s in step 3 (seed 5)",
                        "kill at manifest-written of the checkpoint of step 4",
                        "stage 2 x3 slower in steps 1-5",
                        "stage 2, replica 1 0.02 s a computation or more in steps 1-5");
    }

    private static void pass(RankFaults rank, StepKind kind, long step) {
        rank.beginPass(kind, step);
        rank.beforeOp(FORWARD_3);
        rank.beforeOp(BACKWARD_3);
    }

    private FaultMarkers markers() {
        return new FaultMarkers(folder.resolve("faults"), InstantSource.fixed(NOW));
    }

    private FaultInjector injector(Fault... faults) {
        return new FaultInjector(new FaultPlan(List.of(faults)), markers(), new Recorded());
    }

    private final class Recorded implements ProcessHarm {
        @Override
        public void kill() {
            harmed.add("kill");
        }

        @Override
        public void pause(Duration length) {
            harmed.add("pause " + length);
        }
    }
}
