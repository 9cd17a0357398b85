package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.schedules.ir.PipelineShape;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Everything that is wrong with the options of a command, so that its user hears it at once. */
final class OptionProblems {
    /** The most that an option which counts something may say: no schedule has more of anything. */
    static final int MOST = PipelineShape.MAX_UNITS;

    private final List<String> found = new ArrayList<>();
    private final List<RuntimeException> refusals = new ArrayList<>();

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

    /** Reads something; what is wrong with it is told with all the rest. */
    <T> Optional<T> read(Supplier<T> source) {
        try {
            return Optional.of(source.get());
        } catch (BadInputException | ConfigException e) {
            refusals.add(e);
            add(String.valueOf(e.getMessage()));
            return Optional.empty();
        }
    }

    int size() {
        return found.size();
    }

    /**
     * @throws BadInputException with every problem, if there is any; of a configuration that has
     *     the only one, a ConfigException
     */
    void orThrow() {
        if (found.size() == 1 && refusals.size() == 1) {
            throw refusals.getFirst();
        }
        if (!found.isEmpty()) {
            throw new BadInputException(String.join("\n", found));
        }
    }
}
