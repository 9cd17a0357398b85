package dev.penstock.schedules.ir;

import java.util.List;
import java.util.stream.Collectors;

/**
 * Schedules as text, to read, write by hand and keep in files.
 *
 * <pre>
 * # two ranks, three micro-batches
 * schedule: my order        # default: custom
 * ranks: 2
 * chunks: 1                 # stages per rank, default 1
 * placement: loop           # default; or v, or the rank of every stage: 0 1 1 0
 * micro-batches: 3
 * slice-lengths: 128 64     # or slices: 2 for equal ones; default: sequences are not cut
 * shared: 0 1               # stages that share parameters; may be repeated
 * peers: 1                  # of how many pipelines the ranks are; default 1
 * absent: 5                 # ranks that take no part in the step; only with peers
 *
 * rank 0: 0F0 0F1 0B0
 *         0F2, 0B1, 0B2     # a line without a colon continues with the rank before
 * rank 1: 1F0 1B0 1F1 1B1 1F2 1B2
 * </pre>
 *
 * Between ops stand spaces or commas. {@link #print} and {@link #parse} are inverse.
 *
 * <p>With peers, a wired order: rank r of peer p is rank p x (ranks / peers) + r, the placement is
 * that of one pipeline, and the wiring is who runs what. A micro-batch is wired to the rank that
 * has its forward.
 */
public final class ScheduleText {
    private ScheduleText() {}

    /** The text of a schedule: header, then one line per rank. */
    public static String print(Schedule schedule) {
        PipelineShape shape = schedule.shape();
        var text = new StringBuilder();
        header(text, "schedule", schedule.name());
        header(text, "ranks", String.valueOf(shape.ranks()));
        if (shape.peers() > 1) {
            header(text, "peers", String.valueOf(shape.peers()));
        }
        List<Integer> absent = schedule.placement().wiring().map(Wiring::absent).orElse(List.of());
        if (!absent.isEmpty()) {
            header(text, "absent", numbers(absent));
        }
        header(text, "chunks", String.valueOf(shape.chunks()));
        header(text, "placement", placement(schedule));
        header(text, "micro-batches", String.valueOf(shape.microBatches()));
        header(text, "slice-lengths", numbers(shape.sliceLengths()));
        for (List<Integer> group : schedule.sharedGroups()) {
            header(text, "shared", numbers(group));
        }
        text.append('\n');
        for (RankProgram program : schedule.programs()) {
            text.append("rank ").append(program.rank()).append(':');
            for (Op op : program.ops()) {
                text.append(' ').append(OpText.print(op, shape));
            }
            text.append('\n');
        }
        return text.toString();
    }

    /**
     * The schedule of a text. Whether it can run is for the judge to say.
     *
     * @throws ScheduleTextException with all problems of the text
     */
    public static Schedule parse(String text) {
        return read(text).schedule();
    }

    /**
     * The schedule of a text with the positions of its ops.
     *
     * @throws ScheduleTextException with all problems of the text
     */
    public static ParsedSchedule read(String text) {
        return new ScheduleTextReader(text).read();
    }

    private static void header(StringBuilder text, String key, String value) {
        text.append(key).append(": ").append(value).append('\n');
    }

    private static String placement(Schedule schedule) {
        PipelineShape shape = schedule.shape();
        var placement = new Placement(schedule.placement().rankOfStage());
        if (placement.equals(Placement.loop(shape.pipelineRanks(), shape.chunks()))) {
            return "loop";
        }
        return placement.equals(Placement.v(shape.pipelineRanks()))
                ? "v"
                : numbers(placement.rankOfStage());
    }

    private static String numbers(List<Integer> numbers) {
        return numbers.stream().map(String::valueOf).collect(Collectors.joining(" "));
    }
}
