package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.Straggler;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Reads {@code --straggler}. */
final class Stragglers {
    private Stragglers() {}

    /**
     * The costs with these ranks slow.
     *
     * @param texts such as {@code 2=1.5}
     * @throws BadInputException with everything that is wrong with them
     */
    static CostModel among(List<String> texts, int ranks, CostModel costs) {
        List<String> problems = new ArrayList<>();
        Set<Integer> slow = new TreeSet<>();
        CostModel slowed = costs;
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
            } else if (!slow.add(rank)) {
                problems.add("--straggler: rank %d is given twice".formatted(rank));
            } else {
                slowed = Straggler.ofRank(slowed, rank, factor);
            }
        }
        if (!problems.isEmpty()) {
            throw new BadInputException(String.join("\n", problems));
        }
        return slowed;
    }
}
