package dev.penstock.runtime.config.run;

import com.typesafe.config.ConfigObject;
import dev.penstock.runtime.config.reading.ConfigText;
import dev.penstock.runtime.config.reading.Places;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.reading.Problems;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;

/**
 * A configuration together with where each value was written, so that what is found out later (data
 * too short, an order that cannot run) is reported at its key like everything else.
 */
public final class LoadedConfig {
    private final RunConfig config;
    private final ConfigObject written;
    private final Places places;

    LoadedConfig(RunConfig config, ConfigObject written, Places places) {
        this.config = config;
        this.written = written;
        this.places = places;
    }

    public RunConfig config() {
        return config;
    }

    /** This configuration with another codec, wherever its other values were written. */
    public LoadedConfig withCodec(DataPlaneSection.Codec codec) {
        return new LoadedConfig(config.withCodec(codec), written, places);
    }

    /** Same as {@link RunConfig#withActivations}, wherever its other values were written. */
    public LoadedConfig withActivations(List<Integer> blocks, List<Integer> offloaded) {
        return new LoadedConfig(config.withActivations(blocks, offloaded), written, places);
    }

    /** This configuration for checks beyond its text. */
    public DraftConfig asDraft() {
        return new DraftConfig(this, List.of(), Set.of(), false);
    }

    /**
     * The keys of a section that the file or an override says, by their names in it; those of a
     * folder that {@code model.from} names count as well.
     */
    public Set<String> writtenIn(String section) {
        return ConfigText.valueAt(written, section) instanceof ConfigObject keys
                ? Set.copyOf(keys.keySet())
                : Set.of();
    }

    /** A file as the user would write it: relative to the working directory if below it. */
    public String nameOf(Path file) {
        return places.nameOf(file);
    }

    /**
     * A problem with the value of a key.
     *
     * @param key the key's path, such as {@code data.source}
     */
    public Problem problem(String key, String expected, String got, String advice) {
        Problems problems = new Problems(places);
        problems.atKey(written, key, expected, got, advice);
        return problems.sorted().getFirst();
    }
}
