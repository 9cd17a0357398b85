package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Reads one text; collects every problem before it gives up. */
final class ScheduleTextReader {
    private static final Pattern KEY = Pattern.compile("\\s*([A-Za-z-]*)(?:\\s+(\\S+))?\\s*:");
    private static final Pattern WORD = Pattern.compile("[^\\s,]+");
    private static final List<String> KEYS =
            List.of(
                    "schedule",
                    "ranks",
                    "chunks",
                    "placement",
                    "micro-batches",
                    "slices",
                    "slice-lengths",
                    "shared");

    private record Word(String text, TextPosition position) {}

    /** A header's key with its value. */
    private record Entry(TextPosition position, String value, List<Word> words) {}

    /** A rank's program under construction. */
    private record Lines(TextPosition position, List<Word> words) {}

    private final List<TextProblem> problems = new ArrayList<>();
    private final Map<String, Entry> header = new HashMap<>();
    private final List<Entry> shared = new ArrayList<>();
    private final Map<Integer, Lines> ranks = new TreeMap<>();
    private @Nullable Lines open;

    ParsedSchedule read(String text) {
        List<String> lines = text.lines().toList();
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i);
            int comment = line.indexOf('#');
            line(i + 1, comment < 0 ? line : line.substring(0, comment));
        }
        var last = new TextPosition(Math.max(1, lines.size()), 1);
        @Nullable ParsedSchedule parsed = schedule(last);
        if (parsed == null || !problems.isEmpty()) {
            problems.sort(
                    Comparator.comparingInt((TextProblem p) -> p.position().line())
                            .thenComparingInt(p -> p.position().column()));
            throw new ScheduleTextException(problems);
        }
        return parsed;
    }

    private void line(int number, String line) {
        Matcher key = KEY.matcher(line);
        if (key.lookingAt()) {
            entry(number, line, key);
            return;
        }
        List<Word> words = words(number, line, 0);
        if (words.isEmpty()) {
            return;
        }
        if (open == null) {
            problem(
                    words.getFirst().position(),
                    "expected 'key: value' or 'rank N: ops', got '" + line.strip() + "'");
        } else {
            open.words().addAll(words);
        }
    }

    private void entry(int number, String line, Matcher match) {
        String key = match.group(1);
        int column = Math.max(0, line.indexOf(line.strip())) + 1;
        var position = new TextPosition(number, column);
        List<Word> words = words(number, line, match.end());
        @Nullable String argument = match.group(2);
        if (key.equals("rank")) {
            rank(position, argument == null ? "" : argument, words);
        } else if (!KEYS.contains(key) || argument != null) {
            problem(
                    position,
                    "unknown key '%s', expected one of %s or 'rank N'"
                            .formatted(
                                    line.substring(0, match.end() - 1).strip(),
                                    String.join(", ", KEYS)));
        } else {
            var entry = new Entry(position, line.substring(match.end()).strip(), words);
            if (key.equals("shared")) {
                shared.add(entry);
            } else if (header.putIfAbsent(key, entry) != null) {
                problem(position, "'%s' stands twice".formatted(key));
            }
        }
    }

    private void rank(TextPosition position, String argument, List<Word> words) {
        var lines = new Lines(position, new ArrayList<>(words));
        open = lines;
        if (!argument.matches("\\d{1,9}")) {
            problem(
                    position,
                    "expected 'rank N:' with a number, got 'rank %s'".formatted(argument));
        } else if (ranks.putIfAbsent(Integer.valueOf(argument), lines) != null) {
            problem(
                    position,
                    "rank %s stands twice; a line without a colon goes on with the rank before"
                            .formatted(argument));
        }
    }

    private static List<Word> words(int number, String line, int from) {
        var words = new ArrayList<Word>();
        Matcher word = WORD.matcher(line);
        for (boolean found = word.find(from); found; found = word.find()) {
            words.add(new Word(word.group(), new TextPosition(number, word.start() + 1)));
        }
        return words;
    }

    private @Nullable ParsedSchedule schedule(TextPosition end) {
        int rankCount = number("ranks", 0, end);
        int chunks = number("chunks", 1, end);
        int microBatches = number("micro-batches", 0, end);
        List<Integer> sliceLengths = sliceLengths(end);
        @Nullable Entry name = header.get("schedule");
        if (name != null && name.value().isEmpty()) {
            problem(name.position(), "a schedule's name is empty");
        }
        if (!problems.isEmpty()) {
            checkOps(sliceLengths.size());
            return null;
        }
        try {
            var shape = new PipelineShape(rankCount, chunks, microBatches, sliceLengths);
            Placement placement = placement(shape);
            List<List<Integer>> groups = sharedGroups(shape);
            checkRanks(shape, end);
            checkOps(shape.slices());
            if (!problems.isEmpty()) {
                return null;
            }
            String title = name == null ? "custom" : name.value().replaceAll("\\s+", " ");
            var schedule = new Schedule(title, shape, placement, programs(), groups);
            return new ParsedSchedule(schedule, positions());
        } catch (IllegalArgumentException tooLarge) {
            problem(new TextPosition(1, 1), String.valueOf(tooLarge.getMessage()));
            return null;
        }
    }

    /** A number of 1 or more; {@code fallback} 0 means that it must be given. */
    private int number(String key, int fallback, TextPosition end) {
        @Nullable Entry entry = header.get(key);
        if (entry == null) {
            if (fallback == 0) {
                problem(end, "'%s: N' is missing".formatted(key));
            }
            return Math.max(1, fallback);
        }
        List<Integer> numbers = numbers(key, entry, 1);
        if (numbers.size() != 1) {
            problem(entry.position(), "'%s' is one number, got '%s'".formatted(key, entry.value()));
            return 1;
        }
        return numbers.getFirst();
    }

    private List<Integer> numbers(String key, Entry entry, int least) {
        var numbers = new ArrayList<Integer>();
        for (Word word : entry.words()) {
            boolean number = word.text().matches("\\d{1,9}");
            if (!number || Integer.parseInt(word.text()) < least) {
                problem(
                        word.position(),
                        "'%s' holds numbers of %d or more, got '%s'"
                                .formatted(key, least, word.text()));
                numbers.add(least);
            } else {
                numbers.add(Integer.valueOf(word.text()));
            }
        }
        return numbers;
    }

    private List<Integer> sliceLengths(TextPosition end) {
        @Nullable Entry lengths = header.get("slice-lengths");
        if (lengths == null) {
            // a count larger than any shape allows is cut here, so that it is refused, not built
            int slices = Math.min(number("slices", 1, end), PipelineShape.MAX_UNITS);
            return Collections.nCopies(slices, 1);
        }
        List<Integer> numbers = numbers("slice-lengths", lengths, 1);
        @Nullable Entry slices = header.get("slices");
        if (slices != null && number("slices", 1, end) != numbers.size()) {
            problem(
                    slices.position(),
                    "'slices: %s' does not fit the %d slice-lengths"
                            .formatted(slices.value(), numbers.size()));
        }
        if (numbers.isEmpty()) {
            problem(lengths.position(), "'slice-lengths' is empty");
            return List.of(1);
        }
        return numbers;
    }

    private Placement placement(PipelineShape shape) {
        var loop = Placement.loop(shape.ranks(), shape.chunks());
        @Nullable Entry entry = header.get("placement");
        if (entry == null || entry.value().equals("loop")) {
            return loop;
        }
        List<Integer> placed = numbers("placement", entry, 0);
        if (placed.size() != shape.stages()) {
            problem(
                    entry.position(),
                    "'placement' is 'loop' or the rank of each of the %d stages, got '%s'"
                            .formatted(shape.stages(), entry.value()));
            return loop;
        }
        for (int stage = 0; stage < placed.size(); stage++) {
            if (placed.get(stage) >= shape.ranks()) {
                problem(
                        entry.words().get(stage).position(),
                        "ranks are 0 to %d, got %d"
                                .formatted(shape.ranks() - 1, placed.get(stage)));
                return loop;
            }
        }
        return new Placement(placed);
    }

    private List<List<Integer>> sharedGroups(PipelineShape shape) {
        var groups = new ArrayList<List<Integer>>();
        Set<Integer> taken = new HashSet<>();
        for (Entry entry : shared) {
            List<Integer> group = numbers("shared", entry, 0);
            for (int i = 0; i < group.size(); i++) {
                if (group.get(i) >= shape.stages()) {
                    problem(
                            entry.words().get(i).position(),
                            "stages are 0 to %d, got %d"
                                    .formatted(shape.stages() - 1, group.get(i)));
                } else if (!taken.add(group.get(i))) {
                    problem(
                            entry.words().get(i).position(),
                            "stage %d already shares parameters".formatted(group.get(i)));
                }
            }
            if (group.size() < 2) {
                problem(entry.position(), "'shared' names two stages or more");
            }
            groups.add(group);
        }
        return groups;
    }

    private void checkRanks(PipelineShape shape, TextPosition end) {
        ranks.forEach(
                (rank, lines) -> {
                    if (rank >= shape.ranks()) {
                        problem(
                                lines.position(),
                                "ranks are 0 to %d, got rank %d"
                                        .formatted(shape.ranks() - 1, rank));
                    }
                });
        for (int rank = 0; rank < shape.ranks(); rank++) {
            if (!ranks.containsKey(rank)) {
                problem(end, "'rank %d: ops' is missing".formatted(rank));
            }
        }
    }

    private void checkOps(int slices) {
        for (Lines lines : ranks.values()) {
            for (Word word : lines.words()) {
                if (OpText.parse(word.text()).isEmpty()) {
                    problem(
                            word.position(),
                            "expected an op such as 0F0, 0B0, 0SEND_F0, 1RECV_F0, 1SEND_B0, 0RECV_B0"
                                    + " or 0REDUCE_GRAD, got '%s'".formatted(word.text()));
                } else if (slices > 1
                        && OpText.parse(word.text()).get() instanceof Op.UnitOp
                        && !OpText.namesSlice(word.text())) {
                    problem(
                            word.position(),
                            "sequences have %d slices, so name one: %ss0"
                                    .formatted(slices, word.text()));
                }
            }
        }
    }

    private List<RankProgram> programs() {
        return ranks.entrySet().stream()
                .map(
                        rank ->
                                new RankProgram(
                                        rank.getKey(),
                                        rank.getValue().words().stream()
                                                .map(
                                                        word ->
                                                                OpText.parse(word.text())
                                                                        .orElseThrow())
                                                .toList()))
                .toList();
    }

    private List<List<TextPosition>> positions() {
        var positions = new ArrayList<List<TextPosition>>();
        for (Lines lines : ranks.values()) {
            var ofRank = new ArrayList<TextPosition>();
            TextPosition end = lines.position();
            for (Word word : lines.words()) {
                ofRank.add(word.position());
                end =
                        new TextPosition(
                                word.position().line(),
                                word.position().column() + word.text().length());
            }
            ofRank.add(end);
            positions.add(ofRank);
        }
        return positions;
    }

    private void problem(TextPosition position, String message) {
        problems.add(new TextProblem(position, message));
    }
}
