package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Schedules as PyTorch's pipelining reads and writes them: one line per rank, its actions in their
 * order between commas, no header.
 *
 * <pre>
 * 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1
 * 1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RECV_F1,1F1,1B1,1SEND_B1
 * </pre>
 *
 * An empty cell is an idle step: it means nothing to a reader, and it is there so that a column is
 * a time. The shape follows from the computations: a line is a rank, a stage is placed where it is
 * computed. Where sequences are cut an op names its slice ({@code 0F0s1}), which is our extension.
 *
 * <p>Where ranks share stages, it is a wired order if it can be one: the fewest peers that explain
 * it are taken, a micro-batch is wired to the rank that computes it, and a rank that does nothing
 * at all is absent.
 *
 * <p>What the format cannot say is lost or refused. Lost are a schedule's name, the lengths of its
 * slices (they read back as equal) and its groups of shared parameters; whoever reads a file says
 * them anew. Refused are {@link Op.Recompute} and layer ranges of {@link Op.ParameterOp}, for which
 * there is {@link ScheduleText}. Of everything else {@link #print} and {@link #read} are inverse.
 */
public final class TorchCsv {
    private static final int SHOWN = 5;

    private TorchCsv() {}

    /**
     * The ops alone, without a cell for idle steps.
     *
     * @throws IllegalArgumentException for ops that the format has no action for
     */
    public static String print(Schedule schedule) {
        return print(schedule, schedule.programs().stream().map(program -> program.ops()).toList());
    }

    /**
     * The same aligned in time: column t is what runs in step t if everything takes one step, and
     * all lines have the same number of cells.
     *
     * @throws IllegalArgumentException for ops that the format has no action for
     */
    public static String printPadded(Schedule schedule) {
        return print(schedule, new TimeSteps(schedule).rows());
    }

    /**
     * The schedule of a file with the positions of its ops.
     *
     * @throws ScheduleTextException with all problems of the file
     */
    public static ParsedSchedule read(String text) {
        return new TorchCsvReader(text).read();
    }

    /** Whether the format has an action for this op. */
    static boolean canSay(Op op) {
        return switch (op) {
            case Op.Recompute _, Op.ActivationOp _ -> false;
            case Op.ParameterOp parameters -> parameters.layers().isAll();
            case Op.Overlapped pair -> pair.partner() instanceof Op.InputGradient;
            case Op.UnitOp _, Op.ReduceGradients _ -> true;
        };
    }

    private static String print(Schedule schedule, List<? extends List<? extends Op>> rows) {
        requireSayable(schedule);
        PipelineShape shape = schedule.shape();
        return rows.stream()
                .map(
                        row ->
                                row.stream()
                                        .map(op -> op == null ? "" : OpText.print(op, shape))
                                        .collect(Collectors.joining(",", "", "\n")))
                .collect(Collectors.joining());
    }

    private static void requireSayable(Schedule schedule) {
        var silent = new ArrayList<String>();
        for (RankProgram program : schedule.programs()) {
            program.ops().stream()
                    .filter(op -> !canSay(op))
                    .forEach(op -> silent.add(OpText.print(op, schedule.shape())));
        }
        if (!silent.isEmpty()) {
            throw new IllegalArgumentException(
                    "torch-csv has no actions for recompute, offload, reload, layer ranges and pairs without a"
                            + " backward, got %s%s; use the text format"
                                    .formatted(
                                            String.join(
                                                    ", ",
                                                    silent.subList(
                                                            0, Math.min(SHOWN, silent.size()))),
                                            silent.size() > SHOWN
                                                    ? " and %d more"
                                                            .formatted(silent.size() - SHOWN)
                                                    : ""));
        }
        if (schedule.programs().getLast().ops().isEmpty()) {
            throw new IllegalArgumentException(
                    "torch-csv cannot end with a rank that does nothing, got rank %d without ops"
                            .formatted(schedule.shape().ranks() - 1));
        }
    }
}
