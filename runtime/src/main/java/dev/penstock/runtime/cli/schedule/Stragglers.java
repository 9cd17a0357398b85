package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.Straggler;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads {@code --straggler}. */
final class Stragglers {
    private Stragglers() {}

    /**
     * What is wrong with them.
     *
     * @param texts such as {@code 2=1.5}
     */
    static void check(List<String> texts, int ranks, OptionProblems problems) {
        var _ = factors(texts, ranks, problems);
    }

    /**
     * The costs with these ranks slow.
     *
     * @param texts such as {@code 2=1.5}
     * @throws BadInputException with everything that is wrong with them
     */
    static CostModel among(List<String> texts, int ranks, CostModel costs) {
        var problems = new OptionProblems();
        Map<Integer, Double> factors = factors(texts, ranks, problems);
        problems.orThrow();
        CostModel slowed = costs;
        for (Map.Entry<Integer, Double> slow : factors.entrySet()) {
            slowed = Straggler.ofRank(slowed, slow.getKey(), slow.getValue());
        }
        return slowed;
    }

    /** By rank, as far as they are sound. */
    private static Map<Integer, Double> factors(
            List<String> texts, int ranks, OptionProblems problems) {
        Map<Integer, Double> factors = new LinkedHashMap<>();
        for (String text : texts) {
            if (!text.matches("\\d{1,9}=\\d{1,6}(\\.\\d{1,9})?")) {
                problems.add(
                        "--straggler: expected a rank and a factor up to 999999, such as 2=1.5, got "
                                + text);
                continue;
            }
            int equals = text.indexOf('=');
            int rank = Integer.parseInt(text.substring(0, equals));
            double factor = Double.parseDouble(text.substring(equals + 1));
            if (rank >= ranks) {
                problems.add(
                        "--straggler: expected a rank from 0 to %d, got %d"
                                .formatted(ranks - 1, rank));
            } else if (factors.putIfAbsent(rank, factor) != null) {
                problems.add("--straggler: rank %d is given twice".formatted(rank));
            }
        }
        return factors;
    }
}
