package dev.penstock.runtime.cli;

import dev.penstock.schedules.generate.OpCosts;
import dev.penstock.schedules.simulate.CostModel;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import picocli.CommandLine.Option;

/** What ops cost in a simulation. */
final class CostArguments {
    private static final TreeSet<String> OPS =
            new TreeSet<>(
                    List.of(
                            "forward",
                            "backward",
                            "backward-input",
                            "backward-weight",
                            "transfer"));

    @Option(
            names = "--costs",
            split = ",",
            paramLabel = "OP=TIME",
            description = {
                "Times in any whole unit: forward (default 1), backward-input and",
                "backward-weight (default 1 each), or both in one: backward (default 2);",
                "transfer (default 0)."
            })
    private Map<String, Long> costs = new TreeMap<>();

    /**
     * @throws BadInputException for costs that there are not
     */
    CostModel model() {
        OpCosts values = values();
        return CostModel.split(
                values.forwardNanos(),
                values.backwardInputNanos(),
                values.backwardWeightNanos(),
                values.communicationNanos());
    }

    /**
     * @throws BadInputException for costs that there are not
     */
    OpCosts values() {
        costs.forEach(
                (op, time) -> {
                    if (!OPS.contains(op) || time < 0) {
                        throw new BadInputException(
                                "expected --costs of %s, each 0 or more, got %s=%d"
                                        .formatted(String.join(", ", OPS), op, time));
                    }
                });
        boolean parts = costs.containsKey("backward-input") || costs.containsKey("backward-weight");
        if (parts && costs.containsKey("backward")) {
            throw new BadInputException(
                    "expected either backward or its parts backward-input and backward-weight in"
                            + " --costs, got both");
        }
        long backward = costs.getOrDefault("backward", 2L);
        long input = parts ? costs.getOrDefault("backward-input", 1L) : backward / 2;
        long weight = parts ? costs.getOrDefault("backward-weight", 1L) : backward - backward / 2;
        return new OpCosts(
                costs.getOrDefault("forward", 1L),
                input,
                weight,
                costs.getOrDefault("transfer", 0L));
    }
}
