package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.render.OpClass;
import dev.penstock.schedules.simulate.Timeline;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;

/**
 * Predicted beside measured: the makespan, every kind of op, every rank, and in the median step the
 * ops and waits that differ most.
 */
final class PredictionTables {
    private static final int MOST = 8;

    private final Prediction prediction;
    private final Schedule schedule;
    private final Timeline simulated;
    private final Prediction.Unseen median;

    PredictionTables(Prediction prediction) {
        this.prediction = prediction;
        this.schedule = prediction.schedule();
        this.simulated = prediction.simulated();
        this.median = prediction.median();
    }

    private record Sum(double predicted, double measured, long count) {
        static final Sum NOTHING = new Sum(0, 0, 0);

        Sum plus(double morePredicted, double moreMeasured) {
            return new Sum(predicted + morePredicted, measured + moreMeasured, count + 1);
        }
    }

    /**
     * One row per kind of op that computes, and of collectives if they were measured: mean time of
     * one.
     */
    String kinds() {
        Map<OpClass, Sum> sums = new EnumMap<>(OpClass.class);
        for (Prediction.Unseen step : prediction.unseen()) {
            for (Timeline pipeline : step.pipelines()) {
                OpVisitor addUp =
                        (rank, i, op) ->
                                sums.merge(
                                        OpClass.of(op),
                                        Sum.NOTHING.plus(
                                                simulated.durationNanos(rank, i),
                                                pipeline.keptNanos(rank, i)),
                                        PredictionTables::add);
                forEachComputation(addUp);
                if (pipeline.tellsCollectives()) {
                    forEachOp(PredictionTables::isCollective, addUp);
                }
            }
        }
        StringBuilder table =
                header(
                        "kind of op",
                        "in a step",
                        "predicted",
                        "measured",
                        "error of the prediction");
        int steps = prediction.unseen().size();
        sums.forEach(
                (kind, sum) ->
                        row(
                                table,
                                kind.words(),
                                "" + sum.count / steps,
                                Quantities.nanos(sum.predicted / sum.count),
                                Quantities.nanos(sum.measured / sum.count),
                                signedPercent(Prediction.error(sum.predicted, sum.measured))));
        return end(table);
    }

    /** One row per rank: what it computes, and when it is done with its last op. */
    String ranks() {
        StringBuilder table =
                header(
                        "rank",
                        "computing: predicted",
                        "measured",
                        "error",
                        "last op ends: predicted",
                        "measured",
                        "error");
        RankGrid grid = prediction.grid();
        for (int rank = 0; rank < grid.ranks(); rank++) {
            int program = grid.placeOf(rank).pipeline();
            int pipeline = pipelineOf(rank);
            double predicted = computing(simulated, program);
            double measured = 0;
            double measuredEnd = 0;
            for (Prediction.Unseen step : prediction.unseen()) {
                Timeline timeline = step.pipelines().get(pipeline);
                measured += computing(timeline, program) / prediction.unseen().size();
                measuredEnd += lastEnd(timeline, program) / prediction.unseen().size();
            }
            double predictedEnd = lastEnd(simulated, program);
            row(
                    table,
                    "" + rank,
                    Quantities.nanos(predicted),
                    Quantities.nanos(measured),
                    signedPercent(Prediction.error(predicted, measured)),
                    Quantities.nanos(predictedEnd),
                    Quantities.nanos(measuredEnd),
                    signedPercent(Prediction.error(predictedEnd, measuredEnd)));
        }
        return end(table);
    }

    /** Ops of the median step that took longest beyond what the profile says. */
    String slowerOps() {
        record Slower(int rank, Op op, long predicted, long measured) {
            long nanos() {
                return measured - predicted;
            }
        }
        List<Slower> slower = new ArrayList<>();
        forEachPipeline(
                (timeline, first) ->
                        forEachComputation(
                                (program, i, op) ->
                                        slower.add(
                                                new Slower(
                                                        prediction.grid().sibling(first, program),
                                                        op,
                                                        simulated.durationNanos(program, i),
                                                        timeline.keptNanos(program, i)))));
        StringBuilder table = header("op", "rank", "profile", "measured", "longer by");
        slower.stream()
                .filter(each -> each.nanos() > 0)
                .sorted(Comparator.comparingLong(Slower::nanos).reversed())
                .limit(MOST)
                .forEach(
                        each ->
                                row(
                                        table,
                                        OpText.print(each.op, schedule.shape()),
                                        "" + each.rank,
                                        Quantities.nanos(each.predicted),
                                        Quantities.nanos(each.measured),
                                        Quantities.nanos(each.nanos())));
        return end(table);
    }

    /** For whom ranks waited in the median step, and for how much longer than in the simulation. */
    String waits() {
        record Wait(int rank, int from) {}
        Map<Wait, Sum> waits =
                new TreeMap<>(
                        Comparator.comparingInt((Wait wait) -> wait.rank)
                                .thenComparingInt(wait -> wait.from));
        forEachPipeline(
                (timeline, first) -> {
                    for (RankProgram program : schedule.programs()) {
                        for (int i = 0; i < program.ops().size(); i++) {
                            int sender = sender(program.ops().get(i));
                            if (sender >= 0) {
                                int rank = program.rank();
                                waits.merge(
                                        new Wait(
                                                prediction.grid().sibling(first, rank),
                                                prediction.grid().sibling(first, sender)),
                                        Sum.NOTHING.plus(
                                                waited(simulated, rank, i),
                                                waited(timeline, rank, i)),
                                        PredictionTables::add);
                            }
                        }
                    }
                });
        StringBuilder table =
                header("rank", "waits for rank", "simulated", "measured", "longer by");
        waits.entrySet().stream()
                .sorted(
                        Comparator.comparingDouble(
                                each -> each.getValue().predicted - each.getValue().measured))
                .limit(MOST)
                .forEach(
                        each ->
                                row(
                                        table,
                                        "" + each.getKey().rank,
                                        "" + each.getKey().from,
                                        Quantities.nanos(each.getValue().predicted),
                                        Quantities.nanos(each.getValue().measured),
                                        signed(
                                                each.getValue().measured
                                                        - each.getValue().predicted)));
        return end(table);
    }

    private interface OpVisitor {
        void visit(int rank, int position, Op op);
    }

    private interface PipelineVisitor {
        void visit(Timeline timeline, int firstRank);
    }

    private void forEachComputation(OpVisitor visitor) {
        forEachOp(op -> !op.computations().isEmpty(), visitor);
    }

    private static boolean isCollective(Op op) {
        return op instanceof Op.GatherParameters || op instanceof Op.ReduceGradients;
    }

    private void forEachOp(Predicate<Op> which, OpVisitor visitor) {
        for (RankProgram program : schedule.programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                if (which.test(program.ops().get(i))) {
                    visitor.visit(program.rank(), i, program.ops().get(i));
                }
            }
        }
    }

    private void forEachPipeline(PipelineVisitor visitor) {
        List<Integer> firsts = prediction.grid().pipelines();
        for (int p = 0; p < firsts.size(); p++) {
            visitor.visit(median.pipelines().get(p), firsts.get(p));
        }
    }

    private int pipelineOf(int rank) {
        return prediction.grid().pipelines().indexOf(prediction.grid().sibling(rank, 0));
    }

    private double computing(Timeline timeline, int rank) {
        List<Op> ops = schedule.program(rank).ops();
        double nanos = 0;
        for (int i = 0; i < ops.size(); i++) {
            nanos += ops.get(i).computations().isEmpty() ? 0 : timeline.keptNanos(rank, i);
        }
        return nanos;
    }

    private static double lastEnd(Timeline timeline, int rank) {
        int ops = timeline.opsRun(rank);
        return ops == 0 ? 0 : timeline.endNanos(rank, ops - 1) - timeline.startNanos();
    }

    /** From the end of the op before; what lies between ops counts as waiting in both. */
    private static double waited(Timeline timeline, int rank, int position) {
        long free = position == 0 ? timeline.startNanos() : timeline.endNanos(rank, position - 1);
        return Math.max(0, timeline.endNanos(rank, position) - free);
    }

    /** The rank of the pipeline whose tensor an op takes in; -1 if it takes none in. */
    private int sender(Op op) {
        return switch (op) {
            case Op.ReceiveActivation receive -> schedule.placement().rankOf(receive.stage() - 1);
            case Op.ReceiveGradient receive -> schedule.placement().rankOf(receive.stage() + 1);
            case Op.Compute _,
                    Op.Overlapped _,
                    Op.SendActivation _,
                    Op.SendGradient _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    -1;
        };
    }

    private static Sum add(Sum a, Sum b) {
        return new Sum(a.predicted + b.predicted, a.measured + b.measured, a.count + b.count);
    }

    static String signedPercent(double share) {
        return Double.isFinite(share) ? Quantities.format("%+.1f %%", 100 * share) : "-";
    }

    static String signed(double nanos) {
        return (nanos < 0 ? "-" : "+") + Quantities.nanos(Math.abs(nanos));
    }

    private static StringBuilder header(String... titles) {
        StringBuilder table = new StringBuilder("<div class=\"scroll\"><table><tr>");
        for (String title : titles) {
            table.append("<th>").append(Markup.escape(title)).append("</th>");
        }
        return table.append("</tr>");
    }

    private static void row(StringBuilder table, String... cells) {
        table.append("<tr>");
        for (String cell : cells) {
            table.append(ReportTables.cell(cell));
        }
        table.append("</tr>");
    }

    private static String end(StringBuilder table) {
        return table.append("</table></div>").toString();
    }
}
