package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * A configuration as far as it could be read. Whoever checks more of it than its text (data, an
 * order, a checkpoint) asks first whether the keys that the check builds on are {@link #sound}, so
 * that one mistake is told once and hides no other.
 */
public final class DraftConfig {
    private final LoadedConfig loaded;
    private final List<Problem> problems;
    private final Set<String> broken;
    private final boolean modelMissing;

    /**
     * @param loaded with the default, or nothing, in place of what is broken
     * @param broken keys and sections whose value is not known
     * @param modelMissing whether {@code model.from} names nothing
     */
    DraftConfig(
            LoadedConfig loaded, List<Problem> problems, Set<String> broken, boolean modelMissing) {
        this.modelMissing = modelMissing;
        this.loaded = loaded;
        this.problems = List.copyOf(problems);
        this.broken = Set.copyOf(broken);
    }

    /** What is wrong with the text and its values, by file and line; empty if nothing is. */
    public List<Problem> problems() {
        return problems;
    }

    /**
     * Whether the values of all these are as the user meant them.
     *
     * @param names keys such as {@code model.width}, or whole sections such as {@code model}
     */
    public boolean sound(String... names) {
        return Arrays.stream(names).noneMatch(this::touchesBroken);
    }

    private boolean touchesBroken(String name) {
        return broken.stream()
                .anyMatch(
                        other ->
                                other.equals(name)
                                        || other.startsWith(name + ".")
                                        || name.startsWith(other + "."));
    }

    /**
     * What is wrong but for the folder of the model, where that is not there and nothing else is
     * wrong with the model: a run that goes on knows its model itself. Otherwise empty.
     */
    public Optional<List<Problem>> problemsBesideMissingModel() {
        List<Problem> others =
                problems.stream().filter(problem -> !problem.key().equals("model.from")).toList();
        boolean only =
                modelMissing
                        && others.stream().noneMatch(problem -> problem.key().startsWith("model."));
        return only ? Optional.of(others) : Optional.empty();
    }

    /** The configuration; only the values of {@link #sound} keys may be looked at. */
    public LoadedConfig draft() {
        return loaded;
    }

    /**
     * The configuration, if all of it is sound.
     *
     * @throws ConfigException with all problems
     */
    public LoadedConfig orThrow() {
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        return loaded;
    }
}
