package dev.penstock.runtime.evaluation;

import dev.penstock.runtime.data.DataProblem;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A task by one of its protocols.
 *
 * @param stride tokens from one window to the next; empty: the model's context, so that windows do
 *     not overlap
 */
public record TaskRequest(TaskKind task, Protocol protocol, OptionalInt stride) {
    /** A text as it is, in windows that do not overlap. */
    public static final TaskRequest PLAIN_TEXT =
            new TaskRequest(TaskKind.TEXT, Protocol.PLAIN, OptionalInt.empty());

    /**
     * Reads what a user wrote.
     *
     * @param task null: a text
     * @param protocol null: the only one that the task has
     * @param key makes the place of a problem of {@code task}, {@code protocol} or {@code stride}
     * @param problems receives everything that is wrong
     * @return empty if something is
     */
    public static Optional<TaskRequest> read(
            @Nullable String task,
            @Nullable String protocol,
            @Nullable Integer stride,
            UnaryOperator<String> key,
            List<DataProblem> problems) {
        int before = problems.size();
        Optional<TaskKind> kind = task == null ? Optional.of(TaskKind.TEXT) : TaskKind.named(task);
        if (kind.isEmpty()) {
            problems.add(
                    new DataProblem(
                            key.apply("task"),
                            "one of " + String.join(", ", TaskKind.words()),
                            String.valueOf(task),
                            "choose one of them"));
            if (protocol != null && Protocol.named(protocol).isEmpty()) {
                problems.add(
                        new DataProblem(
                                key.apply("protocol"),
                                "one of " + String.join(", ", Protocol.words()),
                                protocol,
                                "choose one that the task has"));
            }
            return Optional.empty();
        }
        List<Protocol> known = kind.get().protocols();
        Optional<Protocol> chosen =
                protocol == null
                        ? known.stream().filter(_ -> known.size() == 1).findFirst()
                        : Protocol.named(protocol).filter(known::contains);
        if (chosen.isEmpty()) {
            problems.add(
                    new DataProblem(
                            key.apply("protocol"),
                            "%s for task %s".formatted(words(known), kind.get().word()),
                            protocol == null ? "none" : protocol,
                            "figures by different protocols cannot be compared"));
        }
        boolean overlaps = chosen.isPresent() && chosen.get().overlaps(kind.get());
        if (stride != null && chosen.isPresent() && !overlaps) {
            problems.add(
                    new DataProblem(
                            key.apply("stride"),
                            "none for task %s by protocol %s"
                                    .formatted(kind.get().word(), chosen.get().word()),
                            stride.toString(),
                            "it belongs to task text, and to wikitext by megatron"));
        } else if (stride != null && stride < 1) {
            problems.add(
                    new DataProblem(
                            key.apply("stride"),
                            "1 or more tokens",
                            stride.toString(),
                            "leave it out for windows that do not overlap"));
        }
        return problems.size() > before
                ? Optional.empty()
                : Optional.of(
                        new TaskRequest(
                                kind.get(),
                                chosen.orElseThrow(),
                                stride == null ? OptionalInt.empty() : OptionalInt.of(stride)));
    }

    private static String words(List<Protocol> protocols) {
        return protocols.stream().map(Protocol::word).collect(Collectors.joining(" or "));
    }
}
