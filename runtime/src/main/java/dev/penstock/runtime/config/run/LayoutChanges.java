package dev.penstock.runtime.config.run;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigException;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigValue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;

/**
 * What became of a run's configuration between two starts, as far as a resumed run cares: its work
 * may be laid out anew, its tokens must mean the same.
 */
public final class LayoutChanges {
    private static final List<String> LAYOUT = List.of("pipeline", "parallel", "schedule", "batch");

    /** Keys of other sections that change what is computed. */
    private static final List<String> NUMBERS =
            List.of(
                    "data-plane.codec",
                    "data-plane.gradient-codec",
                    "data-plane.codec-from-stage",
                    "data-plane.top-k",
                    "data-plane.error-feedback",
                    "data-plane.delta-rows",
                    "fine-tune.frozen",
                    "optimizer.gradient-sum",
                    "optimizer.state");

    private static final String MODEL = "model";
    private static final String TOKENIZER = "data.tokenizer";
    private static final String SEQUENCES = "batch.sequences";
    private static final String CONTEXT = "model.context";
    private static final String DROPOUT = "model.dropout";

    private final Config before;
    private final Config now;

    /** Compares two resolved configurations; of another Penstock, the first may lack keys. */
    public LayoutChanges(String before, String now) {
        this.before = ConfigFactory.parseString(before);
        this.now = ConfigFactory.parseString(now);
    }

    /**
     * Compares a run's configuration, as the run wrote it, with another resolved one.
     *
     * @throws IOException if the run's cannot be read, or is damaged
     */
    public static LayoutChanges since(Path resolved, String now) throws IOException {
        try {
            return new LayoutChanges(Files.readString(resolved), now);
        } catch (ConfigException e) {
            throw new IOException("damaged: " + e.getMessage(), e);
        }
    }

    /**
     * Returns overrides that give a configuration the model of a run, but for how long sequences
     * are and how much is dropped, which may change; empty if the run's own configuration does not
     * say it.
     *
     * @param resolved the configuration as the run wrote it
     */
    public static Optional<List<String>> modelOf(Path resolved) {
        try {
            Config config = ConfigFactory.parseFile(resolved.toFile());
            if (!config.hasPath(MODEL)) {
                return Optional.empty(); // told of when the run goes on
            }
            List<String> settings = new ArrayList<>();
            for (Map.Entry<String, ConfigValue> key : config.getConfig(MODEL).entrySet()) {
                String path = MODEL + "." + key.getKey();
                if (!path.equals(CONTEXT) && !path.equals(DROPOUT)) {
                    settings.add(path + "=" + key.getValue().render(ConfigRenderOptions.concise()));
                }
            }
            return Optional.of(settings);
        } catch (ConfigException e) {
            return Optional.empty(); // told of when the run goes on
        }
    }

    /** Each as {@code pipeline.stages 1 -> 2}. */
    public List<String> layout() {
        List<String> changes = new ArrayList<>();
        for (String section : LAYOUT) {
            addChanges(section, _ -> true, changes);
        }
        addChanges("data-plane", NUMBERS::contains, changes);
        addChanges("fine-tune", NUMBERS::contains, changes);
        addChanges("optimizer", NUMBERS::contains, changes);
        return changes;
    }

    private void addChanges(String section, Predicate<String> keys, List<String> changes) {
        Map<String, String> earlier = values(before, section);
        values(now, section)
                .forEach(
                        (key, value) -> {
                            String old = earlier.getOrDefault(key, value);
                            if (keys.test(key) && !old.equals(value)) {
                                changes.add("%s %s -> %s".formatted(key, old, value));
                            }
                        });
    }

    /** The name of the tokenizer of before, or where its files were. */
    public Optional<String> tokenizerBefore() {
        return before.hasPath(TOKENIZER)
                ? Optional.of(before.getString(TOKENIZER))
                : Optional.empty();
    }

    /** What becomes of sequences that have another length now; empty if they have the same. */
    public Optional<String> context() {
        int tokens = now.getInt(CONTEXT);
        int earlier = before.hasPath(CONTEXT) ? before.getInt(CONTEXT) : tokens;
        return tokens == earlier
                ? Optional.empty()
                : Optional.of(
                        "sequences have another length, model.context %d -> %d: the data is cut anew%s"
                                .formatted(
                                        earlier,
                                        tokens,
                                        tokens > earlier
                                                ? ", and places from %d on are new to the model"
                                                        .formatted(earlier)
                                                : ""));
    }

    /**
     * What becomes of the order of the data: a step's place in it follows from its number, as if
     * all steps had been of the size that they have now.
     *
     * @param step up to which the run has come
     * @return empty if steps are as large as before
     */
    public Optional<String> dataOrder(long step) {
        int sequences = now.getInt(SEQUENCES);
        int earlier = before.hasPath(SEQUENCES) ? before.getInt(SEQUENCES) : sequences;
        if (step == 0 || sequences == earlier) {
            return Optional.empty();
        }
        return Optional.of(
                "the data continues after %,d sequences (%d steps of batch.sequences = %d), where steps of %d would have come to %,d: what lies between is %s"
                        .formatted(
                                step * sequences,
                                step,
                                sequences,
                                earlier,
                                step * earlier,
                                sequences > earlier ? "left out" : "read a second time"));
    }

    private static Map<String, String> values(Config config, String section) {
        Map<String, String> values = new TreeMap<>();
        if (config.hasPath(section)) {
            for (Map.Entry<String, ConfigValue> entry : config.getConfig(section).entrySet()) {
                values.put(
                        section + "." + entry.getKey(),
                        entry.getValue().render(ConfigRenderOptions.concise()).replace("\"", ""));
            }
        }
        return values;
    }
}
