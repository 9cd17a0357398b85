package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import java.util.Arrays;
import java.util.List;
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

    /**
     * @param loaded with the default, or nothing, in place of what is broken
     * @param broken keys and sections whose value is not known
     */
    DraftConfig(LoadedConfig loaded, List<Problem> problems, Set<String> broken) {
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
