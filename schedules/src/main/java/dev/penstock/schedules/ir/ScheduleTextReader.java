package dev.penstock.schedules.ir;

import dev.penstock.schedules.ir.TextLines.Entry;
import dev.penstock.schedules.ir.TextLines.Word;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Reads one text; collects every problem before it gives up. */
final class ScheduleTextReader {
    private final List<TextProblem> problems = new ArrayList<>();
    private final TextLines lines;
    private int unreadable;

    ScheduleTextReader(String text) {
        this.lines = new TextLines(text, problems);
    }

    ParsedSchedule read() {
        @Nullable PipelineShape shape = shape();
        Optional<ParsedSchedule> draft = Optional.empty();
        List<List<Op>> programs = lines.ranks().values().stream().map(e -> ops(e, shape)).toList();
        if (shape != null) {
            Placement placement = placement(shape);
            List<List<Integer>> groups = sharedGroups(shape);
            checkRanks(shape);
            List<Integer> absent = absent(shape, placement);
            if (problems.size() == unreadable) {
                if (shape.peers() > 1) {
                    placement = new FoundWiring(shape, placement, absent).of(programs);
                }
                var schedule =
                        new Schedule(
                                name(), shape, placement, RankProgram.ofRanks(programs), groups);
                var parsed = new ParsedSchedule(schedule, positions());
                if (problems.isEmpty()) {
                    return parsed;
                }
                draft = Optional.of(parsed);
            }
        }
        problems.sort(
                Comparator.comparingInt((TextProblem p) -> p.position().line())
                        .thenComparingInt(p -> p.position().column()));
        throw new ScheduleTextException(problems, draft, draft.isPresent());
    }

    private String name() {
        @Nullable Entry entry = lines.header().get("schedule");
        return entry == null ? "custom" : entry.value();
    }

    /** Null if the header has problems. */
    private @Nullable PipelineShape shape() {
        int before = problems.size();
        @Nullable Entry name = lines.header().get("schedule");
        if (name != null && name.words().isEmpty()) {
            problem(name.position(), "'schedule' needs a name");
        }
        int ranks = required("ranks");
        int peers = number("peers", 1);
        int chunks = number("chunks", 1);
        int microBatches = required("micro-batches");
        List<Integer> sliceLengths = sliceLengths();
        if (problems.size() > before) {
            return null;
        }
        try {
            return new PipelineShape(ranks, chunks, microBatches, sliceLengths, peers);
        } catch (IllegalArgumentException impossible) {
            problem(new TextPosition(1, 1), String.valueOf(impossible.getMessage()));
            return null;
        }
    }

    private int required(String key) {
        if (!lines.header().containsKey(key)) {
            problem(lines.end(), "'%s: N' is missing".formatted(key));
        }
        return number(key, 1);
    }

    private int number(String key, int otherwise) {
        @Nullable Entry entry = lines.header().get(key);
        if (entry == null) {
            return otherwise;
        }
        if (entry.words().size() != 1) {
            problem(entry.position(), "'%s' is one number, got '%s'".formatted(key, entry.value()));
            return otherwise;
        }
        return numbers(key, entry, 1).getFirst();
    }

    /** One number per word of the entry. */
    private List<Integer> numbers(String key, Entry entry, int least) {
        var numbers = new ArrayList<Integer>();
        for (Word word : entry.words()) {
            int number = word.text().matches("\\d{1,9}") ? Integer.parseInt(word.text()) : -1;
            if (number < least) {
                problem(
                        word.position(),
                        "'%s' holds whole numbers from %d on, got '%s'"
                                .formatted(key, least, word.text()));
            }
            numbers.add(Math.max(number, least));
        }
        return numbers;
    }

    private List<Integer> sliceLengths() {
        int slices = number("slices", 1);
        @Nullable Entry lengths = lines.header().get("slice-lengths");
        if (lengths == null) {
            // a view, so that a count beyond all bounds is refused by the shape and not built here
            return Collections.nCopies(Math.min(slices, PipelineShape.MAX_UNITS), 1);
        }
        List<Integer> numbers = numbers("slice-lengths", lengths, 1);
        if (numbers.isEmpty()) {
            problem(lengths.position(), "'slice-lengths' needs a number per slice");
        }
        @Nullable Entry count = lines.header().get("slices");
        if (count != null && slices != numbers.size()) {
            problem(
                    count.position(),
                    "'slices: %d' does not fit the %d slice-lengths"
                            .formatted(slices, numbers.size()));
        }
        return numbers;
    }

    private Placement placement(PipelineShape shape) {
        var loop = Placement.loop(shape.pipelineRanks(), shape.chunks());
        @Nullable Entry entry = lines.header().get("placement");
        if (entry == null || entry.value().equals("loop")) {
            return loop;
        }
        if (entry.value().equals("v") && shape.chunks() == 2) {
            return Placement.v(shape.pipelineRanks());
        }
        if (entry.words().size() != shape.stages()) {
            problem(
                    entry.position(),
                    "'placement' is 'loop', 'v' (of 2 chunks) or the rank of each of the %d stages, got '%s'"
                            .formatted(shape.stages(), entry.value()));
            return loop;
        }
        int before = problems.size();
        List<Integer> placed = numbers("placement", entry, 0);
        checkBelow("ranks", shape.pipelineRanks(), placed, entry);
        return problems.size() > before ? loop : new Placement(placed);
    }

    private List<Integer> absent(PipelineShape shape, Placement placement) {
        @Nullable Entry entry = lines.header().get("absent");
        if (entry == null) {
            return List.of();
        }
        if (shape.peers() == 1) {
            problem(entry.position(), "'absent' ranks need 'peers: N' that do their work");
            return List.of();
        }
        List<Integer> absent = numbers("absent", entry, 0);
        checkBelow("ranks", shape.ranks(), absent, entry);
        for (int stage = 0; stage < shape.stages(); stage++) {
            int rank = placement.rankOf(stage);
            boolean held =
                    IntStream.range(0, shape.peers())
                            .anyMatch(p -> !absent.contains(p * shape.pipelineRanks() + rank));
            if (!held) {
                problem(
                        entry.position(),
                        "every rank that holds stage %d is absent".formatted(stage));
            }
        }
        return absent;
    }

    private List<List<Integer>> sharedGroups(PipelineShape shape) {
        var groups = new ArrayList<List<Integer>>();
        Set<Integer> taken = new HashSet<>();
        for (Entry entry : lines.shared()) {
            List<Integer> group = numbers("shared", entry, 0);
            checkBelow("stages", shape.stages(), group, entry);
            if (group.size() < 2) {
                problem(entry.position(), "'shared' names two stages or more");
            }
            for (int i = 0; i < group.size(); i++) {
                if (!taken.add(group.get(i))) {
                    problem(
                            entry.words().get(i).position(),
                            "stage %d is shared twice".formatted(group.get(i)));
                }
            }
            groups.add(group);
        }
        return groups;
    }

    private void checkBelow(String what, int bound, List<Integer> numbers, Entry entry) {
        for (int i = 0; i < numbers.size(); i++) {
            if (numbers.get(i) >= bound) {
                problem(
                        entry.words().get(i).position(),
                        "%s are 0 to %d, got %d".formatted(what, bound - 1, numbers.get(i)));
            }
        }
    }

    private void checkRanks(PipelineShape shape) {
        lines.ranks()
                .tailMap(shape.ranks())
                .forEach(
                        (rank, entry) ->
                                problem(
                                        entry.position(),
                                        "ranks are 0 to %d, got rank %d"
                                                .formatted(shape.ranks() - 1, rank)));
        List<Integer> missing =
                IntStream.range(0, shape.ranks())
                        .filter(rank -> !lines.ranks().containsKey(rank))
                        .boxed()
                        .toList();
        if (!missing.isEmpty()) {
            problem(
                    lines.end(),
                    "'rank %d: ops' is missing (%d of %d ranks are)"
                            .formatted(missing.getFirst(), missing.size(), shape.ranks()));
        }
    }

    private List<Op> ops(Entry rank, @Nullable PipelineShape shape) {
        int slices = shape == null ? 1 : shape.slices();
        var ops = new ArrayList<Op>(rank.words().size());
        for (Word word : rank.words()) {
            Optional<Op> op = OpText.parse(word.text());
            op.ifPresentOrElse(ops::add, () -> noOp(word));
            boolean ofUnit =
                    op.isPresent()
                            && (op.get() instanceof Op.UnitOp || op.get() instanceof Op.Overlapped);
            if (ofUnit && slices > 1 && !OpText.namesSlice(word.text())) {
                problem(
                        word.position(),
                        "%1$s needs its slice: %1$ss0 to %1$ss%2$d"
                                .formatted(word.text(), slices - 1));
            }
        }
        return ops;
    }

    private void noOp(Word word) {
        unreadable++;
        problem(
                word.position(),
                "expected an op such as 0F0, 0B0, 0I0, 0W0, 0R0, 0SEND_F0, 1RECV_F0, 1SEND_B0, 0RECV_B0,"
                        + " (0F1;3B0)OVERLAP_F_B, 0UNSHARD, 0RESHARD or 0REDUCE_GRAD, got '%s'"
                                .formatted(word.text()));
    }

    /** Of the ops that could be read, and of each rank's end. */
    private List<List<TextPosition>> positions() {
        var positions = new ArrayList<List<TextPosition>>();
        for (Entry rank : lines.ranks().values()) {
            var ofRank = new ArrayList<TextPosition>();
            for (Word word : rank.words()) {
                if (unreadable == 0 || OpText.parse(word.text()).isPresent()) {
                    ofRank.add(word.position());
                }
            }
            ofRank.add(end(rank));
            positions.add(ofRank);
        }
        return positions;
    }

    private static TextPosition end(Entry rank) {
        if (rank.words().isEmpty()) {
            return rank.position();
        }
        Word last = rank.words().getLast();
        return new TextPosition(
                last.position().line(), last.position().column() + last.text().length());
    }

    private void problem(TextPosition position, String message) {
        problems.add(new TextProblem(position, message));
    }
}
