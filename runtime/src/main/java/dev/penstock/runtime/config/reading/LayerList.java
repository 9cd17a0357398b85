package dev.penstock.runtime.config.reading;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * How a configuration says which layers a model has: how many, all as its family has them, or a
 * list of their kinds. An entry is a kind, {@code N x kind}, or {@code N x (entry, entry, ..)}:
 *
 * <pre>
 *   layers = 12
 *   layers = ["2 x retention", dense]
 *   layers = ["3 x (local(128), local(128), dense)"]
 * </pre>
 *
 * @param entries as they are written; empty: layers are of the family's own kind
 * @param kinds entry l: of layer l; empty likewise
 */
public record LayerList(int count, List<String> entries, List<String> kinds) {
    /** Layers that attend to all tokens before them. */
    public static final String DENSE = "dense";

    /** Layers with a retention in place of attention. */
    public static final String RETENTION = "retention";

    /** Layers that attend to the last tokens alone. */
    public static final Pattern LOCAL = Pattern.compile("local\\(([1-9][0-9]{0,8})\\)");

    private static final int MOST = 10_000;

    /** Far more than any pattern needs. */
    private static final int LONGEST = 1_000;

    private static final Pattern TIMES = Pattern.compile("([1-9][0-9]{0,4})\\s*x\\s+(.+)");

    public LayerList {
        entries = List.copyOf(entries);
        kinds = List.copyOf(kinds);
    }

    /** So many layers of the family's own kind. */
    public static LayerList of(int count) {
        return new LayerList(count, List.of(), List.of());
    }

    /**
     * Layers whose kinds are written one after another.
     *
     * @return empty if the entries are no kinds, or 0 or more than 10,000 layers
     */
    public static Optional<LayerList> of(List<String> entries) {
        List<String> kinds = new ArrayList<>();
        boolean sound =
                entries.stream().allMatch(e -> e.length() <= LONGEST && add(e.strip(), kinds));
        return sound && !kinds.isEmpty()
                ? Optional.of(new LayerList(kinds.size(), entries, kinds))
                : Optional.empty();
    }

    /** Returns so many layers like these, begun anew where they end. */
    public LayerList ofCount(int wanted) {
        if (kinds.isEmpty()) {
            return of(wanted);
        }
        List<String> all = new ArrayList<>();
        for (int layer = 0; layer < wanted; layer++) {
            all.add(kinds.get(layer % kinds.size()));
        }
        return new LayerList(wanted, all, all);
    }

    /** Returns how a setting says it, as on a command line. */
    public String setting() {
        return entries.isEmpty()
                ? String.valueOf(count)
                : entries.stream().collect(Collectors.joining("\", \"", "[\"", "\"]"));
    }

    /** Returns a list of kinds as briefly as it can be written without brackets. */
    public static List<String> brief(List<String> kinds) {
        List<String> entries = new ArrayList<>();
        for (int first = 0, next; first < kinds.size(); first = next) {
            String kind = kinds.get(first);
            next = first + 1;
            while (next < kinds.size() && kinds.get(next).equals(kind)) {
                next++;
            }
            entries.add(next - first == 1 ? kind : "%d x %s".formatted(next - first, kind));
        }
        return entries;
    }

    private static boolean add(String entry, List<String> kinds) {
        if (entry.equals(DENSE) || entry.equals(RETENTION) || LOCAL.matcher(entry).matches()) {
            kinds.add(entry);
            return kinds.size() <= MOST;
        }
        Matcher times = TIMES.matcher(entry);
        if (!times.matches()) {
            return false;
        }
        String repeated = times.group(2);
        List<String> inside =
                repeated.startsWith("(") && repeated.endsWith(")")
                        ? parts(repeated.substring(1, repeated.length() - 1))
                        : List.of(repeated);
        for (int i = Integer.parseInt(times.group(1)); i > 0; i--) {
            if (!inside.stream().allMatch(part -> add(part.strip(), kinds))) {
                return false;
            }
        }
        return true;
    }

    /** Parts at commas that are in no brackets. */
    private static List<String> parts(String text) {
        List<String> parts = new ArrayList<>();
        int depth = 0;
        int first = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
            if (c == ',' && depth == 0) {
                parts.add(text.substring(first, i));
                first = i + 1;
            }
        }
        parts.add(text.substring(first));
        return parts;
    }
}
