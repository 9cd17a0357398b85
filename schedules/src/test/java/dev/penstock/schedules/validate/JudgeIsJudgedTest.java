package dev.penstock.schedules.validate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.NaiveJudge;
import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.ForwardOnly;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.simulate.InFlight;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Spoils valid programs in every way, and compares the verdict with a naive judge's. */
class JudgeIsJudgedTest {
    /** A valid schedule and its conditions. */
    private record Case(Schedule schedule, Conditions conditions) {
        ValidationReport judge(Schedule spoilt) {
            return ScheduleValidator.validate(spoilt, conditions);
        }

        boolean isLegal(Schedule spoilt) {
            return NaiveJudge.isLegal(spoilt, conditions);
        }
    }

    private static Stream<Case> cases() {
        Stream<Schedule> generated =
                Stream.of(
                        Generators.generate("gpipe", PipelineShape.of(3, 2)),
                        Generators.generate("1f1b", PipelineShape.of(3, 3)),
                        Generators.generate("terapipe", PipelineShape.of(2, 1, 3)),
                        Generators.generate("seq1f1b", PipelineShape.of(2, 2, 2)));
        return Stream.concat(
                Stream.concat(generated, RandomOrders.some(10)).flatMap(JudgeIsJudgedTest::cases),
                RandomOrders.paired(40)
                        .filter(order -> order.shape().ranks() > 1 && order.shape().units() <= 8)
                        .limit(5)
                        .map(JudgeIsJudgedTest::withEverything));
    }

    /** Pairs, gathers and releases, reductions of replicas and of tied stages, transfers. */
    private static Case withEverything(Schedule schedule) {
        int stages = schedule.shape().stages();
        ParameterResidency[] residencies = ParameterResidency.values();
        var options =
                LoweringOptions.plain()
                        .withSharedGroups(List.of(List.of(0, stages / 2)))
                        .withGathers(
                                new GatherSettings(
                                        residencies[schedule.shape().units() % residencies.length],
                                        schedule.shape().units() % 3))
                        .withReduction(
                                stages % 2 == 0
                                        ? GradientReduction.PER_STEP
                                        : GradientReduction.PER_MICRO_BATCH)
                        .withCapacity(1);
        return new Case(
                Lowering.lower(schedule, options),
                Conditions.training().with(InFlight.uniform(1)).withReplicas());
    }

    private static Stream<Case> cases(Schedule schedule) {
        int lastStage = schedule.shape().stages() - 1;
        var tied =
                LoweringOptions.plain()
                        .withSharedGroups(List.of(List.of(0, lastStage)))
                        .withCapacity(1);
        Schedule lowered = Lowering.lower(schedule, tied);
        return Stream.of(
                new Case(schedule, Conditions.training()),
                new Case(lowered, Conditions.training().with(InFlight.uniform(1))),
                new Case(ForwardOnly.of(schedule), Conditions.forwardOnly()),
                new Case(
                        Lowering.lowerForwardOnly(schedule, tied),
                        Conditions.forwardOnly().with(InFlight.uniform(1))));
    }

    /** Every op of a schedule in turn. */
    private interface Spoiler {
        void spoil(int rank, int position, Op op);
    }

    private static void everyOp(Schedule schedule, Spoiler spoiler) {
        for (RankProgram program : schedule.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                spoiler.spoil(program.rank(), i, program.ops().get(i));
            }
        }
    }

    private static Schedule with(Schedule schedule, int rank, List<Op> ops) {
        var programs = new ArrayList<>(schedule.programs());
        programs.set(rank, new RankProgram(rank, ops));
        return schedule.withPrograms(programs);
    }

    @Test
    void theOriginalsAreAccepted() {
        cases().forEach(c -> c.judge(c.schedule()).orThrow());
    }

    @Test
    void aDeletedOpIsMissed() {
        cases().forEach(
                        c ->
                                everyOp(
                                        c.schedule(),
                                        (rank, position, op) -> {
                                            var ops = ops(c.schedule(), rank);
                                            ops.remove(position);
                                            Schedule spoilt = with(c.schedule(), rank, ops);
                                            ValidationReport report = c.judge(spoilt);
                                            assertThat(report.isValid())
                                                    .isEqualTo(c.isLegal(spoilt));
                                            if (report.isValid()) {
                                                assertThat(canGo(op) || spoilt.isComputeOnly())
                                                        .isTrue();
                                                return;
                                            }
                                            assertThat(report.violations())
                                                    .anySatisfy(v -> traced(v, rank, op));
                                            for (Op part : unitOps(op)) {
                                                assertThat(report.violations())
                                                        .anySatisfy(v -> missing(v, rank, part));
                                            }
                                        }));
    }

    /**
     * Recomputing is optional; replicas may sum less often; the last release may be left to the
     * end. (Otherwise it was the only op that is no computation.)
     */
    private static boolean canGo(Op op) {
        return op instanceof Op.Recompute
                || op instanceof Op.ReduceGradients
                || op instanceof Op.ReleaseParameters;
    }

    private static List<Op> unitOps(Op op) {
        return op instanceof Op.UnitOp ? List.of(op) : List.copyOf(op.computations());
    }

    /** The violation names the rank and the op's stage. */
    private static void traced(Violation violation, int rank, Op op) {
        assertThat(violation.place().rank()).isEqualTo(rank);
        assertThat(stages(violation.place().op())).containsAnyElementsOf(stages(op));
    }

    private static List<Integer> stages(Op op) {
        return op.computations().isEmpty()
                ? List.of(op.stage())
                : op.computations().stream().map(Op::stage).toList();
    }

    private static void missing(Violation violation, int rank, Op op) {
        assertThat(violation).isInstanceOf(Violation.Missing.class);
        assertThat(violation.place().rank()).isEqualTo(rank);
        assertThat(violation.place().op()).isEqualTo(op);
    }

    @Test
    void aDuplicatedOpIsNoticed() {
        cases().forEach(
                        c ->
                                everyOp(
                                        c.schedule(),
                                        (rank, position, op) -> {
                                            var ops = ops(c.schedule(), rank);
                                            ops.addLast(op);
                                            Schedule spoilt = with(c.schedule(), rank, ops);
                                            ValidationReport report = c.judge(spoilt);
                                            if (!unitOps(op).isEmpty()) {
                                                assertThat(report.violations())
                                                        .anySatisfy(v -> duplicate(v, rank, ops));
                                            }
                                            assertThat(report.isValid())
                                                    .isEqualTo(c.isLegal(spoilt));
                                        }));
    }

    @Test
    void parametersThatComeOrGoTwiceAreNoticed() {
        cases().forEach(
                        c ->
                                everyOp(
                                        c.schedule(),
                                        (rank, position, op) -> {
                                            if (op instanceof Op.ParameterOp) {
                                                var ops = ops(c.schedule(), rank);
                                                ops.add(position, op);
                                                assertThat(
                                                                c.judge(
                                                                                with(
                                                                                        c
                                                                                                .schedule(),
                                                                                        rank,
                                                                                        ops))
                                                                        .violations())
                                                        .anySatisfy(
                                                                v -> twice(v, rank, position + 1));
                                            }
                                        }));
    }

    private static void twice(Violation violation, int rank, int position) {
        assertThat(violation)
                .isInstanceOfAny(Violation.NotResident.class, Violation.Unexpected.class);
        assertThat(violation.place().rank()).isEqualTo(rank);
        assertThat(violation.place().position()).isEqualTo(position);
    }

    private static void duplicate(Violation violation, int rank, List<Op> ops) {
        assertThat(violation).isInstanceOf(Violation.Duplicate.class);
        assertThat(violation.place().rank()).isEqualTo(rank);
        assertThat(violation.place().position()).isEqualTo(ops.size() - 1);
    }

    @Test
    void anOpOnAnotherRankIsNoticed() {
        cases().filter(c -> c.schedule().shape().ranks() > 1)
                .forEach(
                        c ->
                                everyOp(
                                        c.schedule(),
                                        (rank, position, op) -> {
                                            var ops = ops(c.schedule(), rank);
                                            ops.remove(position);
                                            int other = (rank + 1) % c.schedule().shape().ranks();
                                            var others = ops(c.schedule(), other);
                                            others.addFirst(op);
                                            Schedule spoilt =
                                                    with(
                                                            with(c.schedule(), rank, ops),
                                                            other,
                                                            others);
                                            assertThat(c.judge(spoilt).violations())
                                                    .anySatisfy(v -> wrongRank(v, other, rank, op));
                                        }));
    }

    private static void wrongRank(Violation violation, int rank, int expected, Op op) {
        assertThat(violation.place().rank()).isEqualTo(rank);
        assertThat(violation.place().op()).isEqualTo(op);
        assertThat(violation).isInstanceOf(Violation.WrongRank.class);
        assertThat(((Violation.WrongRank) violation).expectedRank()).isEqualTo(expected);
    }

    @Test
    void anOpOfAUnitThatDoesNotExistIsNoticed() {
        cases().forEach(
                        c ->
                                everyOp(
                                        c.schedule(),
                                        (rank, position, op) -> {
                                            var ops = ops(c.schedule(), rank);
                                            Op stray =
                                                    new Op.Forward(new WorkUnit(op.stage(), 99, 0));
                                            ops.set(position, stray);
                                            ValidationReport report =
                                                    c.judge(with(c.schedule(), rank, ops));
                                            assertThat(report.violations())
                                                    .anySatisfy(v -> unknown(v, rank, position));
                                        }));
    }

    private static void unknown(Violation violation, int rank, int position) {
        assertThat(violation).isInstanceOf(Violation.UnknownUnit.class);
        assertThat(violation.place().rank()).isEqualTo(rank);
        assertThat(violation.place().position()).isEqualTo(position);
    }

    @Test
    void swappedOpsAreRefusedWhereTheyMatterAndAcceptedWhereTheyDoNot() {
        var verdicts = new int[2];
        cases().forEach(
                        c ->
                                everyOp(
                                        c.schedule(),
                                        (rank, position, _) -> {
                                            int size = ops(c.schedule(), rank).size();
                                            for (int other = position + 1; other < size; other++) {
                                                var ops = ops(c.schedule(), rank);
                                                Collections.swap(ops, position, other);
                                                Schedule spoilt = with(c.schedule(), rank, ops);
                                                ValidationReport report = c.judge(spoilt);
                                                boolean legal = c.isLegal(spoilt);
                                                verdicts[legal ? 1 : 0]++;
                                                assertThat(report.isValid())
                                                        .as(() -> ScheduleText.print(spoilt))
                                                        .isEqualTo(legal);
                                                assertThat(report.violations().stream())
                                                        .allMatch(v -> !v.message().isBlank());
                                                if (!legal) {
                                                    assertThat(ranksNamed(report)).contains(rank);
                                                }
                                            }
                                        }));
        assertThat(verdicts[0]).as("swaps that matter").isGreaterThan(1000);
        assertThat(verdicts[1]).as("swaps that do not").isGreaterThan(1000);
    }

    /** Ranks that break a rule; of a deadlock all ranks of the cycle. */
    private static List<Integer> ranksNamed(ValidationReport report) {
        return report.violations().stream()
                .flatMap(
                        v ->
                                v instanceof Violation.Deadlock deadlock
                                        ? deadlock.cycle().stream().map(w -> w.place().rank())
                                        : Stream.of(v.place().rank()))
                .toList();
    }

    private static List<Op> ops(Schedule schedule, int rank) {
        return new ArrayList<>(schedule.program(rank).ops());
    }

    @Test
    void anythingThatCanRunIsAcceptedHoweverUnusual() {
        RandomOrders.some(500)
                .forEach(
                        order -> {
                            assertThat(
                                            NaiveJudge.isLegal(
                                                    order, PassKind.TRAINING, InFlight.unbounded()))
                                    .isTrue();
                            ScheduleValidator.validate(order).orThrow();
                        });
    }

    @Test
    void pairsThatCanRunAreAcceptedLoweredOrNot() {
        RandomOrders.paired(300)
                .forEach(
                        order -> {
                            ScheduleValidator.validate(order).orThrow();
                            for (int capacity = 1; capacity <= 2; capacity++) {
                                var options = LoweringOptions.plain().withCapacity(capacity);
                                ScheduleValidator.validate(
                                                Lowering.lower(order, options),
                                                Conditions.training()
                                                        .with(InFlight.uniform(capacity)))
                                        .orThrow();
                            }
                            Schedule lowered = Lowering.lower(order);
                            ScheduleValidator.validate(
                                            lowered,
                                            Conditions.training().with(InFlight.auto(lowered)))
                                    .orThrow();
                        });
        assertThat(
                        RandomOrders.paired(300)
                                .flatMap(order -> order.programs().stream())
                                .flatMap(program -> program.ops().stream())
                                .filter(op -> op instanceof Op.Overlapped))
                .hasSizeGreaterThan(300);
    }
}
