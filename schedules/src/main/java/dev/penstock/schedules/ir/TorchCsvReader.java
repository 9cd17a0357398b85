package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/** Reads one file and collects its problems. */
final class TorchCsvReader {
    private static final String NAME = "custom";

    private final List<TextProblem> problems = new ArrayList<>();
    private final List<List<Op>> programs = new ArrayList<>();

    /** Entry r: of every op of rank r, then of the line's end. */
    private final List<List<TextPosition>> positions = new ArrayList<>();

    /** Entry r: the ops of rank r that name their slice. */
    private final List<BitSet> sliced = new ArrayList<>();

    private final List<Integer> cells = new ArrayList<>();
    private final List<String> lines;
    private final CsvExtent extent = new CsvExtent();

    TorchCsvReader(String text) {
        this.lines = withoutBlankEnd(text.lines().toList());
    }

    private static List<String> withoutBlankEnd(List<String> lines) {
        int end = lines.size();
        while (end > 0 && lines.get(end - 1).isBlank()) {
            end--;
        }
        return lines.subList(0, end);
    }

    ParsedSchedule read() {
        for (int rank = 0; rank < lines.size(); rank++) {
            readLine(rank, lines.get(rank));
        }
        checkCells();
        checkSlices();
        boolean everyOpWasRead = problems.isEmpty();
        Optional<PipelineShape> shape = shape();
        if (shape.isPresent() && problems.isEmpty()) {
            return parsed(shape.get());
        }
        problems.sort(
                Comparator.comparingInt((TextProblem p) -> p.position().line())
                        .thenComparingInt(p -> p.position().column()));
        throw new ScheduleTextException(
                problems,
                everyOpWasRead
                        ? extent.beforeGaps(programs.size()).map(this::parsed)
                        : Optional.empty());
    }

    private void readLine(int rank, String line) {
        programs.add(new ArrayList<>());
        positions.add(new ArrayList<>());
        sliced.add(new BitSet());
        int count = 0;
        int from = 0;
        while (from <= line.length()) {
            int comma = line.indexOf(',', from);
            int end = comma < 0 ? line.length() : comma;
            String cell = line.substring(from, end);
            if (!cell.isBlank()) {
                int indent = cell.length() - cell.stripLeading().length();
                readCell(rank, cell.strip(), new TextPosition(rank + 1, from + indent + 1));
            }
            count++;
            from = end + 1;
        }
        cells.add(count);
        positions.get(rank).add(new TextPosition(rank + 1, line.length() + 1));
    }

    private void readCell(int rank, String text, TextPosition position) {
        Optional<Op> parsed = OpText.parse(text);
        if (parsed.isEmpty()) {
            problem(position, unknown(text));
            return;
        }
        Op op = parsed.get();
        if (!TorchCsv.canSay(op)) {
            problem(position, text + " is an op of the text format alone, not of torch-csv");
            return;
        }
        sliced.get(rank).set(programs.get(rank).size(), OpText.namesSlice(text));
        programs.get(rank).add(op);
        positions.get(rank).add(position);
        extent.add(rank, op, position);
    }

    private static String unknown(String text) {
        String expected =
                "expected an action such as 0F0, 0B0, 0I0, 0W0, 0SEND_F0, 1RECV_F0, 1SEND_B0, 0RECV_B0,"
                        + " (0F1;3B0)OVERLAP_F_B, 0UNSHARD, 0RESHARD or 0REDUCE_GRAD, got '%s'"
                                .formatted(text);
        return text.matches("\\d+BW\\d+")
                ? expected + "; files from before I and W were named: write B for BW, and I for B"
                : expected;
    }

    /** A line that ends with idle steps says that lines are as long as the step. */
    private void checkCells() {
        boolean padded = lines.stream().anyMatch(line -> line.stripTrailing().endsWith(","));
        int longest = cells.stream().mapToInt(count -> count).max().orElse(0);
        for (int rank = 0; padded && rank < cells.size(); rank++) {
            if (cells.get(rank) < longest) {
                problem(
                        positions.get(rank).getLast(),
                        "lines padded with idle steps have as many cells as the longest, %d, got %d"
                                .formatted(longest, cells.get(rank)));
            }
        }
    }

    /** Where sequences are cut, every op of a unit says which slice it is of. */
    private void checkSlices() {
        for (int rank = 0; extent.slices() > 1 && rank < programs.size(); rank++) {
            List<Op> ops = programs.get(rank);
            for (int i = 0; i < ops.size(); i++) {
                boolean ofUnit =
                        ops.get(i) instanceof Op.UnitOp || ops.get(i) instanceof Op.Overlapped;
                if (ofUnit && !sliced.get(rank).get(i)) {
                    problem(
                            positions.get(rank).get(i),
                            OpText.print(ops.get(i), false) + " names no slice, but others do");
                }
            }
        }
    }

    private Optional<PipelineShape> shape() {
        List<TextProblem> doubts = extent.doubts(programs.size());
        problems.addAll(doubts);
        try {
            return doubts.isEmpty() ? extent.beforeGaps(programs.size()) : Optional.empty();
        } catch (IllegalArgumentException impossible) {
            problem(new TextPosition(1, 1), String.valueOf(impossible.getMessage()));
            return Optional.empty();
        }
    }

    private ParsedSchedule parsed(PipelineShape shape) {
        Placement placement = extent.placement(shape.stages(), shape.pipelineRanks());
        if (shape.peers() > 1) {
            placement = new FoundWiring(shape, placement, CsvPeers.idle(programs)).of(programs);
        }
        return new ParsedSchedule(
                new Schedule(NAME, shape, placement, RankProgram.ofRanks(programs)), positions);
    }

    private void problem(TextPosition position, String message) {
        problems.add(new TextProblem(position, message));
    }
}
