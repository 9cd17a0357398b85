package dev.penstock.runtime.config.run;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigValue;
import com.typesafe.config.ConfigValueFactory;
import com.typesafe.config.ConfigValueType;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.ConfigText;
import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.config.reading.Mismatch;
import dev.penstock.runtime.config.reading.Places;
import dev.penstock.runtime.config.reading.Problems;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.ScheduleFormat;
import dev.penstock.schedules.ir.ScheduleTextException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import org.jspecify.annotations.Nullable;

/**
 * Reads a configuration file (HOCON) and overrides into a {@link RunConfig}, or says everything
 * that is wrong with them.
 */
public final class ConfigLoader {
    private static final String FROM = "model.from";
    private static final String CONTEXT = "model.context";
    private static final int USUAL_CONTEXT = 256;

    /** What a model's folder would say: a run's own configuration has all of it. */
    private static final List<String> TOLD =
            List.of(
                    "model.family",
                    "model.vocabulary",
                    "model.width",
                    "model.layers",
                    "model.heads",
                    "model.tied",
                    "model.key-heads",
                    "model.head-size",
                    "model.hidden",
                    "model.attention",
                    "model.attention-by-layer",
                    "model.activation",
                    "model.epsilon",
                    "model.theta",
                    "model.stretch",
                    "model.positions");

    private static final String CHUNKS = "pipeline.chunks";
    private static final String STAGES = "pipeline.stages";

    /** Another name of {@link #STAGES}, beside the other factors of the number of ranks. */
    private static final String STAGES_IN_PARALLEL = "parallel.stages";

    private final Places places;
    private final Problems problems;
    private final SectionReader sections;
    private final ConfigText text;
    private final ConfigObject written;
    private final Set<String> broken;

    /** Whether the text is one that a run wrote for itself. */
    private final boolean ofRun;

    private boolean modelMissing;

    private ConfigLoader(Path file, @Nullable String given, List<String> overrides, boolean ofRun) {
        this.ofRun = ofRun;
        this.places =
                new Places(
                        file.toAbsolutePath().normalize(),
                        Path.of("").toAbsolutePath().normalize());
        this.problems = new Problems(places);
        this.sections = new SectionReader(problems, places);
        this.text = new ConfigText(places.mainFile(), given, problems);
        ConfigObject read = text.read(overrides);
        this.broken = new HashSet<>(text.keysWithoutValue());
        this.written = withModel(withStagesAtOnePlace(read));
    }

    /**
     * Reads a file.
     *
     * @param overrides {@code key=value}, later ones win over earlier ones and over the file
     * @throws ConfigException with all problems at once
     */
    public static RunConfig load(Path file, List<String> overrides) {
        return loadWithOrigins(file, overrides).config();
    }

    /** Same as {@link #load}, keeping where each value came from. */
    public static LoadedConfig loadWithOrigins(Path file, List<String> overrides) {
        return draft(file, overrides).orThrow();
    }

    /**
     * Same as {@link #loadWithOrigins}, with the problems as values: for checks beyond the text.
     */
    public static DraftConfig draft(Path file, List<String> overrides) {
        return new ConfigLoader(file, null, overrides, false).read();
    }

    /**
     * Same as {@link #draft}, of a text that is in no file. Relative paths in it lead to the
     * working directory.
     *
     * @param name names it in problems, and the run unless {@code run.name} does
     */
    public static DraftConfig draftOfText(String name, String text, List<String> overrides) {
        return new ConfigLoader(Path.of(name), text, overrides, false).read();
    }

    /**
     * Same as {@link #draft}, of the text that a run wrote of its own configuration: that says all
     * of the model, so the folder that {@code model.from} named may be gone.
     */
    public static DraftConfig draftOfRun(Path file, List<String> overrides) {
        return new ConfigLoader(file, null, overrides, true).read();
    }

    /**
     * Same as {@link #draftOfRun}.
     *
     * @throws ConfigException with all problems at once
     */
    public static LoadedConfig loadOfRun(Path file, List<String> overrides) {
        return draftOfRun(file, overrides).orThrow();
    }

    /** Same as {@link #loadOfRun}, of the text itself. */
    public static LoadedConfig loadOfRun(String name, String text, List<String> overrides) {
        return new ConfigLoader(Path.of(name), text, overrides, true).read().orThrow();
    }

    private DraftConfig read() {
        reportUnknownKeys();
        Map<String, @Nullable Object> values = new HashMap<>();
        Keys.all().forEach(key -> values.put(key.path(), valueOf(key)));
        SortedMap<Integer, FaultEntry> faults = faults();
        text.reportUnresolvedElsewhere();
        chunksOfFile(values).ifPresent(chunks -> values.put(CHUNKS, Optional.of(chunks)));
        RunConfig config = Keys.assemble(key -> values.get(key.path()), faults.values());
        reportConflicts(config);
        reportImpossible(config, faults);
        return new DraftConfig(
                new LoadedConfig(config, written, places), problems.sorted(), broken, modelMissing);
    }

    private SortedMap<Integer, FaultEntry> faults() {
        ConfigValue list = written.get(FaultEntries.NAME);
        if (list != null && !ConfigText.isResolved(list)) {
            broken.add(FaultEntries.NAME);
            text.reportUnresolved(FaultEntries.NAME, list);
        }
        int before = problems.count();
        SortedMap<Integer, FaultEntry> sound = new FaultEntries(problems, sections).read(written);
        if (problems.count() > before) {
            broken.add(FaultEntries.NAME);
        }
        return sound;
    }

    private ConfigObject withStagesAtOnePlace(ConfigObject read) {
        ConfigValue other = ConfigText.valueAt(read, STAGES_IN_PARALLEL);
        if (other == null || !ConfigText.isResolved(other)) {
            return read;
        }
        ConfigValue stages = ConfigText.valueAt(read, STAGES);
        Config rest = read.toConfig().withoutPath(STAGES_IN_PARALLEL);
        if (stages == null) {
            return rest.withValue(STAGES, other).root();
        }
        if (ConfigText.isResolved(stages) && !stages.unwrapped().equals(other.unwrapped())) {
            broken.add(STAGES);
            problems.at(
                    other.origin(),
                    STAGES_IN_PARALLEL,
                    "%s as in %s, which is the same key".formatted(shown(stages), STAGES),
                    shown(other),
                    "leave one of the two out");
        }
        return rest.root();
    }

    /** Adds what {@code model.from} says of the model and the file does not. */
    private ConfigObject withModel(ConfigObject read) {
        ConfigValue from = ConfigText.valueAt(read, FROM);
        if (from == null
                || !ConfigText.isResolved(from)
                || from.valueType() != ConfigValueType.STRING
                || from.unwrapped().equals("none")) {
            return read;
        }
        ModelConfig model;
        Path file = Path.of("");
        try {
            file = ModelKeys.file(places.existing(from));
            model = ModelConfig.read(file);
        } catch (Mismatch e) { // told of when the key is read
            return withoutFolder(read);
        } catch (StoredFileException e) {
            boolean gone = !Files.exists(file);
            ConfigObject without = gone ? withoutFolder(read) : read;
            if (gone && !modelMissing) {
                return without;
            }
            broken.add(FROM);
            broken.add("model");
            problems.at(
                    from.origin(),
                    FROM,
                    "a model's folder or its config.json",
                    String.valueOf(e.getMessage()),
                    "take a model of a family that Penstock knows");
            return read;
        }
        Config all = read.toConfig();
        Map<String, Object> told = new LinkedHashMap<>();
        int most = model.shape().positions().most();
        if (ConfigText.valueAt(read, CONTEXT) == null) {
            told.put(CONTEXT, Math.min(most, USUAL_CONTEXT));
        }
        told.putAll(ModelKeys.of(model.family(), model.shape()));
        for (Map.Entry<String, Object> each : told.entrySet()) {
            ConfigValue given = ConfigText.valueAt(read, each.getKey());
            ConfigValue value = ConfigValueFactory.fromAnyRef(each.getValue(), places.nameOf(file));
            if (given != null && !ConfigText.isResolved(given)) {
                continue; // told of when the key is read
            }
            if (given == null || given.valueType() == ConfigValueType.NULL) {
                all = all.withValue(each.getKey(), value);
            } else if (!ModelKeys.isSame(given.unwrapped(), value.unwrapped())) {
                broken.add(each.getKey());
                problems.at(
                        given.origin(),
                        each.getKey(),
                        "%s, as %s says".formatted(shown(value), places.nameOf(file)),
                        shown(given),
                        "leave it out");
            }
        }
        return all.root();
    }

    /** Where a model's folder has gone, a run's own configuration has all that it said. */
    private ConfigObject withoutFolder(ConfigObject read) {
        List<String> unsaid =
                TOLD.stream().filter(key -> ConfigText.valueAt(read, key) == null).toList();
        if (ofRun && unsaid.isEmpty()) {
            return read.toConfig().withValue(FROM, ConfigValueFactory.fromAnyRef("none")).root();
        }
        modelMissing = true;
        broken.addAll(unsaid);
        return read;
    }

    /** What is wrong with a fault leaves all that it was compared with as it is. */
    private void reportImpossible(RunConfig config, SortedMap<Integer, FaultEntry> faults) {
        List<Conflict> conflicts =
                FaultChecks.of(config, faults).stream()
                        .filter(conflict -> conflict.keys().stream().noneMatch(this::isBroken))
                        .toList();
        conflicts.forEach(this::report);
        if (!conflicts.isEmpty()) {
            broken.add(FaultEntries.NAME);
        }
    }

    private void report(Conflict conflict) {
        problems.atKey(
                written,
                conflict.keys().getFirst(),
                conflict.expected(),
                conflict.got(),
                conflict.advice());
    }

    /** An order says itself how many stages a rank has; a file that is none is told of later. */
    private static Optional<Integer> chunksOfFile(Map<String, @Nullable Object> values) {
        if (values.get("schedule.file") instanceof Optional<?> file
                && file.orElse(null) instanceof Path path
                && Optional.empty().equals(values.get(CHUNKS))) {
            try {
                ParsedSchedule order =
                        ScheduleFormat.ofFile(path.toString()).read(Files.readString(path));
                return Optional.of(order.schedule().shape().chunks());
            } catch (IOException | ScheduleTextException e) {
                return Optional.empty();
            }
        }
        return Optional.empty();
    }

    private void reportUnknownKeys() {
        Map<String, List<Key>> sections = Keys.bySection();
        written.forEach(
                (name, value) -> {
                    List<Key> keys = sections.get(name);
                    if (name.equals(FaultEntries.NAME)) {
                        return; // a list, read by itself
                    }
                    if (keys == null) {
                        String known = String.join(", ", sections.keySet());
                        unknown(name, "one of the sections " + known, value);
                    } else if (!ConfigText.isResolved(value)) {
                        broken.add(name);
                        text.reportUnresolved(name, value);
                    } else if (value instanceof ConfigObject entries) {
                        reportUnknownKeys(name, keys, entries);
                    } else {
                        broken.add(name);
                        notASection(name, value);
                    }
                });
    }

    private void notASection(String path, ConfigValue value) {
        problems.at(
                value.origin(),
                path,
                "a section " + path + " { .. }",
                shown(value),
                "put its keys in braces");
    }

    private void reportUnknownKeys(String section, List<Key> keys, ConfigObject entries) {
        List<String> names = keys.stream().map(Key::name).toList();
        entries.forEach((name, value) -> reportIfUnknown(section, names, name, value));
    }

    private void reportIfUnknown(
            String section, List<String> names, String name, ConfigValue value) {
        boolean part = names.stream().anyMatch(known -> known.startsWith(name + "."));
        if (part && ConfigText.isResolved(value) && value instanceof ConfigObject entries) {
            entries.forEach((inner, in) -> reportIfUnknown(section, names, name + "." + inner, in));
        } else if (part && ConfigText.isResolved(value) && !names.contains(name)) {
            notASection(section + "." + name, value);
        } else if (!names.contains(name)) {
            unknown(section + "." + name, "a key of section " + section, value);
        }
    }

    /** What it was probably meant to be has no value then, unless that is written as well. */
    private void unknown(String path, String expected, ConfigValue value) {
        Optional<String> meant = Keys.meant(path);
        meant.filter(key -> !isWritten(key)).ifPresent(broken::add);
        problems.at(
                value.origin(),
                path,
                expected,
                "an unknown key",
                meant.map(key -> "did you mean " + key + "?")
                        .orElse("remove it, or see penstock config keys"));
    }

    private boolean isWritten(String keyOrSection) {
        return keyOrSection.contains(".")
                ? ConfigText.valueAt(written, keyOrSection) != null
                : written.containsKey(keyOrSection);
    }

    /** The key's value; the default where there is none or where it cannot be read. */
    private @Nullable Object valueOf(Key key) {
        ConfigValue value = ConfigText.valueAt(written, key.path());
        if (value != null && !ConfigText.isResolved(value)) {
            broken.add(key.path());
            text.reportUnresolved(key.path(), value);
            return key.standard().isEmpty() ? null : standardOf(key);
        }
        if (value == null || value.valueType() == ConfigValueType.NULL) {
            return standardOf(key);
        }
        Object read = sections.value(value, key.path(), key.type(), usual(key));
        if (read != null) {
            return read;
        }
        broken.add(key.path());
        return key.standard().isEmpty() ? null : standardOf(key);
    }

    private @Nullable Object standardOf(Key key) {
        if (!text.fileWasRead()) {
            broken.add(key.path());
        }
        if (!key.standard().isEmpty()) {
            return key.type().parse(key.standard());
        }
        if (key.path().equals("run.name")) {
            String file = String.valueOf(places.mainFile().getFileName());
            return RunSection.fileName(file.replaceFirst("\\.[^.]+$", ""));
        }
        boolean known = broken.contains(key.path()) || broken.contains(key.sectionName());
        if (!known) {
            broken.add(key.path());
            problems.inFile(key.path(), key.takes(), "nothing", "add it: " + key.doc());
        }
        return null;
    }

    private static String usual(Key key) {
        return key.standard().isEmpty() ? "it is " + key.doc() : "the default is " + key.standard();
    }

    private void reportConflicts(RunConfig config) {
        Set<String> inConflict = new HashSet<>();
        Consistency.of(config).stream()
                .filter(conflict -> conflict.keys().stream().noneMatch(this::isBroken))
                .forEach(
                        conflict -> {
                            inConflict.addAll(conflict.keys());
                            report(conflict);
                        });
        broken.addAll(inConflict);
    }

    private boolean isBroken(String key) {
        int dot = key.indexOf('.');
        return broken.contains(key) || (dot > 0 && broken.contains(key.substring(0, dot)));
    }

    private static String shown(ConfigValue value) {
        return value.render(ConfigRenderOptions.concise());
    }
}
