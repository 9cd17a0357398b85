package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.List;
import org.junit.jupiter.api.Test;

class ProfileCostsTest {
    private static final String TEXT =
            """
            penstock profile 1
            forward 0s0 100
            forward 0s1 110
            forward 1s0 120
            backward 0s0 201
            backward-input 1s0 130
            backward-weight 1s0 90
            overlapped 0.75
            latency 0 1 20
            link 1 0 30
            gather 0 40
            reduce 1 50
            """;

    private static long cost(ProfileCosts costs, Op op) {
        return costs.nanos(0, 0, op);
    }

    @Test
    void printsAndParsesInverse() {
        ProfileCosts profile = ProfileText.parse(TEXT);

        assertThat(ProfileText.print(profile)).isEqualTo(TEXT);
        assertThat(ProfileText.parse(ProfileText.print(profile)).lines())
                .isEqualTo(profile.lines());
        assertThat(ProfileText.parse("\n# made by hand\npenstock  profile 1 # v\n\n").lines())
                .isEmpty();
        assertThat(new ProfileLine.OverlapFactor(0.00001).text()).isEqualTo("overlapped 0.000010");
    }

    @Test
    void aProfileSaysWhetherItsTimesAreOfSeveralLengths() {
        String mixed = TEXT.replace("overlapped", "lengths mixed\noverlapped");

        assertThat(ProfileText.parse(TEXT).mixedLengths()).isFalse();
        assertThat(ProfileText.parse(mixed).mixedLengths()).isTrue();
        assertThat(ProfileText.print(ProfileText.parse(mixed))).isEqualTo(mixed);
        assertThatThrownBy(() -> ProfileText.parse("penstock profile 1\nlengths 4"))
                .hasMessageContaining("'lengths mixed', got 'lengths 4'");
    }

    @Test
    void costsAreThoseOfTheLines() {
        ProfileCosts costs = ProfileText.parse(TEXT);

        assertThat(cost(costs, new Op.Forward(new WorkUnit(0, 7, 1)))).isEqualTo(110);
        assertThat(cost(costs, new Op.Backward(new WorkUnit(0, 7, 0)))).isEqualTo(201);
        assertThat(cost(costs, new Op.BackwardInput(new WorkUnit(1, 0, 0)))).isEqualTo(130);
        assertThat(cost(costs, new Op.BackwardWeight(new WorkUnit(1, 0, 0)))).isEqualTo(90);
        assertThat(costs.latencyNanos(new Channel(0, 1))).isEqualTo(20);
        assertThat(costs.latencyNanos(new Channel(1, 0))).isZero();
        assertThat(costs.occupancyNanos(new Channel(1, 0), new WorkUnit(0, 0, 0))).isEqualTo(30);
        assertThat(costs.backgroundNanos(0, new Op.GatherParameters(0, LayerRange.ALL)))
                .isEqualTo(40);
        assertThat(costs.backgroundNanos(0, new Op.ReleaseParameters(0, LayerRange.ALL))).isZero();
        assertThat(costs.backgroundNanos(0, new Op.ReduceGradients(1))).isEqualTo(50);
    }

    @Test
    void collectivesKeepTheirRank() {
        String text =
                """
                penstock profile 1
                forward 0s0 100
                backward 0s0 200
                gathering forward 0s0 7
                gathering backward 0s0 9
                gather-work 0 40
                reduce-work 0 50
                """;
        ProfileCosts costs = ProfileText.parse(text);
        WorkUnit unit = new WorkUnit(0, 3, 0);

        assertThat(ProfileText.print(costs)).isEqualTo(text);
        assertThat(cost(costs, new Op.Forward(unit))).isEqualTo(107);
        assertThat(cost(costs, new Op.Recompute(unit))).isEqualTo(107);
        assertThat(cost(costs, new Op.Backward(unit))).isEqualTo(209);
        assertThat(cost(costs, new Op.BackwardInput(unit))).isEqualTo(109);
        assertThat(cost(costs, new Op.BackwardWeight(unit))).isEqualTo(100);
        assertThat(cost(costs, new Op.GatherParameters(0, LayerRange.ALL))).isEqualTo(40);
        assertThat(cost(costs, new Op.ReduceGradients(0))).isEqualTo(50);
        assertThat(cost(costs, new Op.ReduceGradients(1))).isZero();
        assertThat(costs.backgroundNanos(0, new Op.ReduceGradients(0))).isZero();
        assertThat(cost(costs.computing(), new Op.Backward(unit))).isEqualTo(200);
        assertThat(cost(costs.computing(), new Op.ReduceGradients(0))).isZero();
        assertThatThrownBy(() -> ProfileText.parse("penstock profile 1\nreduce-work 0s0 1\n"))
                .hasMessageContaining("expected a fact such as 'reduce-work 0 70000'");
    }

    @Test
    void whatWasNotMeasuredFollowsFromWhatWas() {
        ProfileCosts costs = ProfileText.parse(TEXT);

        assertThat(cost(costs, new Op.BackwardInput(new WorkUnit(0, 0, 0)))).isEqualTo(100);
        assertThat(cost(costs, new Op.BackwardWeight(new WorkUnit(0, 0, 0)))).isEqualTo(101);
        assertThat(cost(costs, new Op.Backward(new WorkUnit(1, 0, 0)))).isEqualTo(220);
        assertThat(cost(costs, new Op.Recompute(new WorkUnit(1, 0, 0)))).isEqualTo(120);
        var pair =
                new Op.Overlapped(
                        new Op.Forward(new WorkUnit(0, 1, 0)),
                        new Op.Backward(new WorkUnit(1, 0, 0)));
        assertThat(cost(costs, pair)).isEqualTo(240);
    }

    @Test
    void whatIsMissingIsNamedAtOnce() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 2
                        micro-batches: 2
                        slices: 2
                        rank 0: 0F0s0 0F0s1 0F1s0 0B0s1
                        rank 1: 1F0s0 1F0s1 1W0s1
                        """);
        ProfileCosts costs = ProfileText.parse(TEXT);

        assertThat(costs.missing(schedule))
                .containsExactly(
                        "backward of stage 0, slice 1",
                        "forward of stage 1, slice 1",
                        "backward-weight of stage 1, slice 1");
        assertThatThrownBy(() -> ScheduleSimulator.simulate(schedule, costs))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("the profile has no cost for");
    }

    @Test
    void allProblemsOfATextAreToldWithTheirLines() {
        assertThatThrownBy(
                        () ->
                                ProfileText.parse(
                                        """
                                        penstock profil 1
                                        forward 0 100
                                        sideways 0s0 3
                                        link 0 2 7
                                        reduce 1 -3
                                        overlapped x
                                        gather 0 4
                                        latency 1 0
                                        gather 0 5
                                        """))
                .isInstanceOfSatisfying(
                        InvalidCostsException.class,
                        e ->
                                assertThat(e.problems())
                                        .containsExactly(
                                                "line 1, column 1: expected 'penstock profile 1',"
                                                        + " got 'penstock profil 1'",
                                                "line 2, column 1: expected a fact such as 'forward"
                                                        + " 0s0 1200000', got 'forward 0 100'",
                                                "line 3, column 1: expected a fact such as 'forward"
                                                        + " 0s0 1200000', got 'sideways 0s0 3'",
                                                "line 4, column 1: expected a fact such as 'link 0"
                                                        + " 1 150000', got 'link 0 2 7'",
                                                "line 5, column 1: expected a fact such as 'reduce"
                                                        + " 0 900000', got 'reduce 1 -3'",
                                                "line 6, column 1: expected a fact such as"
                                                        + " 'overlapped 0.85', got 'overlapped x'",
                                                "line 8, column 1: expected a fact such as 'latency"
                                                        + " 0 1 20000', got 'latency 1 0'",
                                                "line 9, column 1: 'gather 0 5' is given twice"));
        assertThatThrownBy(() -> ProfileText.parse("\n"))
                .hasMessage("line 1, column 1: expected 'penstock profile 1', got nothing");
        assertThatThrownBy(() -> new ProfileLine.Gather(0, -1))
                .hasMessage("expected nanoseconds of 0 or more, got -1");
        assertThatThrownBy(() -> new ProfileLine.OverlapFactor(Double.NaN))
                .hasMessage("expected a factor of 0 or more, got NaN");
    }

    @Test
    void meansOfMeasuredStepsMakeAProfile() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 3
                        rank 0: 0F0 0F1 0B0 (0F2;0B1)OVERLAP_F_B 0B2
                        """);
        var means = new MeasuredMeans();
        means.add(
                List.of(
                        Timeline.measured(
                                schedule,
                                new long[][] {{0, 10, 40, 60, 100}},
                                new long[][] {{10, 30, 60, 100, 140}})));
        means.add(
                List.of(
                        Timeline.measured(
                                schedule,
                                new long[][] {{0, 10, 40, 60, 100}},
                                new long[][] {{10, 30, 60, 98, 140}})));

        var profile = new ProfileCosts(means.lines());

        assertThat(profile.missing(schedule)).isEmpty();
        assertThat(cost(profile, new Op.Forward(new WorkUnit(0, 0, 0)))).isEqualTo(15);
        assertThat(cost(profile, new Op.Backward(new WorkUnit(0, 0, 0)))).isEqualTo(30);
        assertThat(profile.lines())
                .last()
                .isInstanceOfSatisfying(
                        ProfileLine.OverlapFactor.class,
                        pair -> assertThat(pair.factor()).isCloseTo(39.0 / 45, within(1e-12)));
    }

    /** The forward waits 6 of its 10 for the gather before it, and the sum runs on to the end. */
    @Test
    void gathersAndSumsHaveLinesOfTheirOwn() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 1
                        rank 0: 0UNSHARD 0F0 0B0 0REDUCE_GRAD
                        """);
        var means = new MeasuredMeans();
        means.add(
                List.of(
                        Timeline.measured(
                                schedule,
                                new long[][] {{0, 3, 13, 22}},
                                new long[][] {{3, 13, 22, 30}},
                                new long[][] {{3, 6, 0, 8}})));

        var profile = new ProfileCosts(means.lines());

        assertThat(profile.lines().stream().map(ProfileLine::text))
                .containsExactly(
                        "forward 0s0 4", "backward 0s0 9", "gather-work 0 9", "reduce-work 0 8");
        assertThat(ScheduleSimulator.simulate(schedule, profile).makespanNanos()).isEqualTo(30);
    }

    /** The backward waits 5 of its 15 for what comes back; the load runs beside all of it. */
    @Test
    void copiesRunBesideTheComputationsThatWaitForThem() {
        Schedule schedule =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 1
                        rank 0: 0UNSHARD 0F0 0OFFLOAD0 0RELOAD0 0B0
                        """);
        var means = new MeasuredMeans();
        means.add(
                List.of(
                        Timeline.measured(
                                schedule,
                                new long[][] {{0, 0, 13, 13, 13}},
                                new long[][] {{0, 13, 13, 13, 28}},
                                new long[][] {{1, 3, 0, 0, 0}},
                                new long[][] {{3, 0, 2, 3, 5}})));
        means.addUpdate(40);

        var profile = new ProfileCosts(means.lines());

        assertThat(profile.lines().stream().map(ProfileLine::text))
                .containsExactly(
                        "forward 0s0 10",
                        "backward 0s0 10",
                        "gather 0 3",
                        "offload 0 2",
                        "reload 0 3",
                        "update 40");
        assertThat(ScheduleSimulator.simulate(schedule, profile).makespanNanos()).isEqualTo(28);
        assertThat(profile.updateNanos()).hasValue(40);
        assertThat(ProfileText.parse(ProfileText.print(profile)).lines())
                .isEqualTo(profile.lines());
    }

    @Test
    void gathersWithoutOpsStayWithTheirComputations() {
        Schedule schedule = ScheduleText.parse("ranks: 1\nmicro-batches: 1\nrank 0: 0F0 0B0\n");
        Timeline step =
                Timeline.measured(
                        schedule,
                        new long[][] {{0, 10}},
                        new long[][] {{10, 25}},
                        new long[][] {{6, 7}});
        var means = new MeasuredMeans();
        means.add(List.of(step));
        var whole = new MeasuredMeans();
        whole.add(List.of(step.withoutCollectives()));

        assertThat(means.lines().stream().map(ProfileLine::text))
                .containsExactly(
                        "forward 0s0 4",
                        "backward 0s0 8",
                        "gathering forward 0s0 6",
                        "gathering backward 0s0 7");
        assertThat(whole.lines().stream().map(ProfileLine::text))
                .containsExactly("forward 0s0 10", "backward 0s0 15");
    }

    @Test
    void profiledStepsAreSimulatedAsLongAsTheyTook() {
        Schedule schedule =
                ScheduleText.parse("ranks: 1\nmicro-batches: 2\nrank 0: 0F0 0B0 0F1 0B1\n");
        var means = new MeasuredMeans();
        means.add(
                List.of(
                        Timeline.measured(
                                schedule,
                                new long[][] {{0, 4, 9, 15}},
                                new long[][] {{4, 9, 15, 22}})));

        var profile = new ProfileCosts(means.lines());

        assertThat(ScheduleSimulator.simulate(schedule, profile).makespanNanos()).isEqualTo(22);
    }
}
