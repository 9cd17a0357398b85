package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.ir.PipelineShape;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Everything that is wrong with the options of a command, so that its user hears it at once. */
final class OptionProblems {
    /** The most that an option which counts something may say: no schedule has more of anything. */
    static final int MOST = PipelineShape.MAX_UNITS;

    private final List<String> found = new ArrayList<>();

    void add(String problem) {
        found.add(problem);
    }

    /**
     * Checks an option that counts something.
     *
     * @param value null if the option is not given
     */
    void count(String option, @Nullable Integer value, int least, int most) {
        if (value != null && (value < least || value > most)) {
            add("%s: expected %d to %d, got %d".formatted(option, least, most, value));
        }
    }

    /** The same with words for what is counted, of which there is at least one. */
    void count(String option, @Nullable Integer value, String one, String many) {
        if (value != null && (value < 1 || value > MOST)) {
            add("%s: expected 1 %s to %d %s, got %d".formatted(option, one, MOST, many, value));
        }
    }

    /**
     * @throws BadInputException with every problem, if there is any
     */
    void orThrow() {
        if (!found.isEmpty()) {
            throw new BadInputException(String.join("\n", found));
        }
    }
}
