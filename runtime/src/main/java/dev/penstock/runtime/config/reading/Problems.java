package dev.penstock.runtime.config.reading;

import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigOrigin;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigValue;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Gathers what is wrong with one configuration. */
public final class Problems {
    private final Places places;
    private final List<Problem> found = new ArrayList<>();

    public Problems(Places places) {
        this.places = places;
    }

    /** A problem with what stands at {@code origin}. */
    public void at(ConfigOrigin origin, String key, String expected, String got, String advice) {
        found.add(
                new Problem(
                        places.nameOf(origin), places.lineOf(origin), key, expected, got, advice));
    }

    /** A problem with a value, which is quoted. */
    public void at(ConfigValue value, String key, String expected, String advice) {
        String got = value.render(ConfigRenderOptions.concise());
        at(value.origin(), key, expected, got, advice);
    }

    /** A problem with the main file as a whole, or with something that is not in it. */
    public void inFile(String key, String expected, String got, String advice) {
        found.add(new Problem(places.nameOf(places.mainFile()), 0, key, expected, got, advice));
    }

    /** A problem with a key that may or may not be written somewhere. */
    public void atKey(
            ConfigObject written, String key, String expected, String got, String advice) {
        ConfigValue value = ConfigText.valueAt(written, key);
        if (value == null) {
            inFile(key, expected, got, advice);
        } else {
            at(value.origin(), key, expected, got, advice);
        }
    }

    public int count() {
        return found.size();
    }

    /** All problems by file and line. */
    public List<Problem> sorted() {
        return found.stream()
                .sorted(Comparator.comparing(Problem::place).thenComparing(Problem::line))
                .toList();
    }
}
