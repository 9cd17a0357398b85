package dev.penstock.runtime.cli.model;

import dev.penstock.runtime.cli.model.ModelFacts.TensorRow;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Tensors one a line; those that only their layer's number tells apart share a line: {@code
 * h.{0-11}.ln_1.weight}.
 */
final class TensorTable {
    private static final Pattern NUMBER = Pattern.compile("(^|\\.)(\\d+)(?=\\.)");

    private TensorTable() {}

    /** What tensors of a line have in common; their name with a placeholder. */
    private record Alike(String name, String type, List<Long> shape) {}

    /** Returns the lines, a heading first. */
    static List<String> lines(List<TensorRow> tensors) {
        Map<Alike, List<Integer>> groups = new LinkedHashMap<>();
        for (TensorRow tensor : tensors) {
            Matcher number = NUMBER.matcher(tensor.name());
            boolean layered = number.find() && number.group(2).length() < 9;
            String name =
                    layered
                            ? tensor.name().substring(0, number.start(2))
                                    + "{}"
                                    + tensor.name().substring(number.end(2))
                            : tensor.name();
            List<Integer> numbers =
                    groups.computeIfAbsent(
                            new Alike(name, tensor.type(), tensor.shape()), _ -> new ArrayList<>());
            if (layered) {
                numbers.add(Integer.parseInt(number.group(2)));
            }
        }
        int width =
                groups.entrySet().stream().mapToInt(group -> name(group).length()).max().orElse(6);
        List<String> lines = new ArrayList<>();
        String form = "%-" + Math.max(6, width) + "s  %-5s %s";
        lines.add(form.formatted("tensor", "type", "shape"));
        for (Map.Entry<Alike, List<Integer>> group : groups.entrySet()) {
            lines.add(form.formatted(name(group), group.getKey().type(), group.getKey().shape()));
        }
        return lines;
    }

    private static String name(Map.Entry<Alike, List<Integer>> group) {
        return group.getKey().name().replace("{}", ranges(group.getValue()));
    }

    /** Returns {@code 3}, {@code {0-11}}, or {@code {0-2,7}}. */
    private static String ranges(List<Integer> given) {
        List<Integer> numbers = given.stream().sorted().toList();
        if (numbers.size() == 1) {
            return numbers.getFirst().toString();
        }
        List<int[]> ranges = new ArrayList<>();
        for (int number : numbers) {
            if (!ranges.isEmpty() && ranges.getLast()[1] == number - 1) {
                ranges.getLast()[1] = number;
            } else {
                ranges.add(new int[] {number, number});
            }
        }
        return ranges.stream()
                .map(r -> r[0] == r[1] ? "" + r[0] : r[0] + "-" + r[1])
                .collect(Collectors.joining(",", "{", "}"));
    }
}
