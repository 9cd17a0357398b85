package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A schedule's text cut into header entries and the words of each rank; nothing interpreted. */
final class TextLines {
    /** Something between spaces and commas. */
    record Word(String text, TextPosition position) {}

    /** A key with its value: the words of its line, and for a rank of the lines that go on. */
    record Entry(TextPosition position, List<Word> words) {
        String value() {
            return String.join(" ", words.stream().map(Word::text).toList());
        }
    }

    private static final Pattern KEY = Pattern.compile("\\s*([^\\s:]+)(?:\\s+([^\\s:]+))?\\s*:");
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
                    "shared",
                    "peers",
                    "absent");

    private final List<TextProblem> problems;
    private final Map<String, Entry> header = new HashMap<>();
    private final List<Entry> shared = new ArrayList<>();
    private final SortedMap<Integer, Entry> ranks = new TreeMap<>();
    private final TextPosition end;
    private @Nullable Entry open;

    TextLines(String text, List<TextProblem> problems) {
        this.problems = problems;
        List<String> lines = text.lines().toList();
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i);
            int comment = line.indexOf('#');
            add(i + 1, comment < 0 ? line : line.substring(0, comment));
        }
        this.end = new TextPosition(Math.max(1, lines.size()), 1);
    }

    /** Header entries but {@link #shared}, by key. */
    Map<String, Entry> header() {
        return header;
    }

    List<Entry> shared() {
        return shared;
    }

    SortedMap<Integer, Entry> ranks() {
        return ranks;
    }

    /** The last line: where something is missing. */
    TextPosition end() {
        return end;
    }

    private void add(int number, String line) {
        Matcher key = KEY.matcher(line);
        if (key.lookingAt()) {
            var position = new TextPosition(number, key.start(1) + 1);
            addEntry(key, new Entry(position, words(number, line, key.end())));
            return;
        }
        List<Word> words = words(number, line, 0);
        if (words.isEmpty()) {
            return;
        }
        if (open == null) {
            problem(
                    words.getFirst().position(),
                    "expected 'key: value' or 'rank N: ops', got '%s'".formatted(line.strip()));
        } else {
            open.words().addAll(words);
        }
    }

    private void addEntry(Matcher match, Entry entry) {
        String key = match.group(1);
        @Nullable String argument = match.group(2);
        if (key.equals("rank")) {
            addRank(argument == null ? "" : argument, entry);
        } else if (!KEYS.contains(key) || argument != null) {
            problem(
                    entry.position(),
                    "unknown key '%s', expected one of %s or 'rank N'"
                            .formatted(
                                    argument == null ? key : key + " " + argument,
                                    String.join(", ", KEYS)));
        } else if (key.equals("shared")) {
            shared.add(entry);
        } else if (header.putIfAbsent(key, entry) != null) {
            problem(entry.position(), "'%s' is given twice".formatted(key));
        }
    }

    private void addRank(String number, Entry entry) {
        open = entry;
        if (!number.matches("\\d{1,9}")) {
            problem(
                    entry.position(),
                    "expected 'rank N:' with a number, got 'rank %s:'".formatted(number));
        } else if (ranks.putIfAbsent(Integer.valueOf(number), entry) != null) {
            problem(
                    entry.position(),
                    "rank %s is given twice; a line without a colon goes on with the rank before"
                            .formatted(number));
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

    private void problem(TextPosition position, String message) {
        problems.add(new TextProblem(position, message));
    }
}
