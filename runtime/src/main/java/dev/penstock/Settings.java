package dev.penstock;

import com.typesafe.config.ConfigException;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigUtil;
import com.typesafe.config.ConfigValueFactory;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DraftConfig;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A configuration as a program gives it.
 *
 * @param file null where it is a text
 * @param text null where it is a file
 * @param overrides {@code key=value}, later ones win
 */
record Settings(@Nullable Path file, @Nullable String text, List<String> overrides) {
    /** Names a text in problems, and its run unless {@code run.name} does. */
    private static final String NAME = "training";

    Settings {
        overrides = List.copyOf(overrides);
    }

    /** The same with another key. */
    Settings with(String key, Object value) {
        List<String> all = new ArrayList<>(overrides);
        all.add(key + "=" + written(value));
        return new Settings(file, text, all);
    }

    /** A text is read as it would be in a file, everything else as what it is. */
    private static String written(Object value) {
        return switch (value) {
            case String words -> words;
            case Path path -> ConfigUtil.quoteString(path.toString());
            case Duration time -> time.toNanos() + " ns";
            case Enum<?> word -> ConfigUtil.quoteString(word.toString());
            default -> rendered(value);
        };
    }

    private static String rendered(Object value) {
        try {
            return ConfigValueFactory.fromAnyRef(value).render(ConfigRenderOptions.concise());
        } catch (ConfigException e) {
            throw new IllegalArgumentException(
                    "expected a number, a text, a boolean, a path, a duration, a list or a map, got a "
                            + value.getClass().getName(),
                    e);
        }
    }

    /** Reads it as far as that is possible. */
    DraftConfig draft() {
        return draft(overrides);
    }

    /** Reads it under other overrides. */
    DraftConfig draft(List<String> others) {
        return file != null
                ? ConfigLoader.draft(file, others)
                : ConfigLoader.draftOfText(NAME, text == null ? "" : text, others);
    }
}
