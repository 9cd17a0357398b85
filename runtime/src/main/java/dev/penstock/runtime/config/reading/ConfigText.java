package dev.penstock.runtime.config.reading;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigList;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigOrigin;
import com.typesafe.config.ConfigOriginFactory;
import com.typesafe.config.ConfigParseOptions;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigResolveOptions;
import com.typesafe.config.ConfigUtil;
import com.typesafe.config.ConfigValue;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** From a file and overrides to one tree of values; what they mean is not looked at here. */
public final class ConfigText {
    private static final String A_KNOWN_NAME =
            "every ${..} to name another key or an environment variable";

    private static final Pattern IN_LIST = Pattern.compile("(\\w+)\\[(\\d{1,6})]\\.(.+)");

    /** Far above any section; a text from a client may be meant to exhaust the stack. */
    private static final int DEEPEST = 64;

    /** Bytes that are looked at before a file is taken for text. */
    private static final int BEGINNING = 1 << 16;

    private final Path file;

    /** Read instead of the file; null: the file has it. */
    private final @Nullable String given;

    private final Problems problems;
    private final Set<String> keysWithoutValue = new HashSet<>();
    private boolean fileWasRead = true;
    private com.typesafe.config.@Nullable ConfigException unresolved;

    public ConfigText(Path file, Problems problems) {
        this(file, null, problems);
    }

    /**
     * @param file names the text in problems
     * @param given the text itself; null: the file has it
     */
    public ConfigText(Path file, @Nullable String given, Problems problems) {
        this.file = file;
        this.given = given;
        this.problems = problems;
    }

    /**
     * The file with the overrides over it and every {@code ${..}} replaced. What cannot be read is
     * left out and among the problems; a {@code ${..}} that names nothing stays.
     */
    public ConfigObject read(List<String> overrides) {
        try {
            ConfigObject written = readAll(overrides);
            if (!isDeeperThan(DEEPEST, written)) {
                return written;
            }
        } catch (StackOverflowError e) {
            unresolved = null; // the parser calls itself for what lies in braces
        }
        fileWasRead = false;
        problems.inFile(
                "",
                "",
                "syntax error: braces, brackets or dots are more than %d deep".formatted(DEEPEST),
                "");
        return ConfigFactory.empty().root();
    }

    private static boolean isDeeperThan(int levels, ConfigValue value) {
        if (levels == 0) {
            return true;
        }
        try {
            return switch (value) {
                case ConfigObject object ->
                        object.values().stream().anyMatch(each -> isDeeperThan(levels - 1, each));
                case ConfigList list ->
                        list.stream().anyMatch(each -> isDeeperThan(levels - 1, each));
                default -> false;
            };
        } catch (com.typesafe.config.ConfigException.NotResolved e) {
            return false;
        }
    }

    private ConfigObject readAll(List<String> overrides) {
        Config merged = ConfigFactory.empty();
        for (String override : overrides) {
            merged = parseOverride(override).withFallback(merged);
        }
        return resolved(merged.withFallback(parseFile())).root();
    }

    private Config resolved(Config merged) {
        try {
            return merged.resolve();
        } catch (com.typesafe.config.ConfigException e) {
            unresolved = fileWasRead ? e : null; // else it may be named there
        }
        try {
            return merged.resolve(ConfigResolveOptions.defaults().setAllowUnresolved(true));
        } catch (com.typesafe.config.ConfigException e) {
            fileWasRead = false; // ${..} in a circle: no value is known
            return ConfigFactory.empty();
        }
    }

    /**
     * Whether a text says everything itself: it includes no file and refers to nothing of the
     * machine where it is read. One that cannot be parsed does neither.
     */
    public static boolean isSelfContained(String text) {
        try {
            return ConfigFactory.parseString(
                            text,
                            ConfigParseOptions.defaults().setIncluder(new StrictIncluder(false)))
                    .isResolved();
        } catch (com.typesafe.config.ConfigException.IO e) {
            return false; // an include
        } catch (com.typesafe.config.ConfigException | StackOverflowError e) {
            return true;
        }
    }

    /** Whether what is not written was left out by the user. */
    public boolean fileWasRead() {
        return fileWasRead;
    }

    /** Keys of overrides that lack a value. */
    public Set<String> keysWithoutValue() {
        return keysWithoutValue;
    }

    /** Whether a value, and all in a list, is known. */
    public static boolean isResolved(ConfigValue value) {
        try {
            return switch (value) {
                case ConfigObject object -> object.keySet() != null; // throws
                case ConfigList list -> list.stream().allMatch(ConfigText::isResolved);
                default -> value.valueType() != null; // throws
            };
        } catch (com.typesafe.config.ConfigException.NotResolved e) {
            return false;
        }
    }

    /** A value that is not {@link #isResolved}. */
    public void reportUnresolved(String key, ConfigValue value) {
        unresolved = null;
        if (fileWasRead) {
            problems.at(
                    value.origin(),
                    key,
                    A_KNOWN_NAME,
                    value.render(ConfigRenderOptions.concise()),
                    "correct the text there");
        }
    }

    /** A {@code ${..}} that names nothing, if it is in no key's value. */
    public void reportUnresolvedElsewhere() {
        if (unresolved != null) {
            report(unresolved, A_KNOWN_NAME, "");
        }
    }

    /**
     * The value at a path {@code section.name}, {@code section.part.name} or {@code list[0].name},
     * or null.
     */
    public static @Nullable ConfigValue valueAt(ConfigObject written, String path) {
        Matcher inList = IN_LIST.matcher(path);
        if (inList.matches()) {
            return valueInList(written, inList);
        }
        ConfigValue at = written;
        for (String name : path.split("\\.")) {
            at =
                    at instanceof ConfigObject section && isResolved(section)
                            ? section.get(name)
                            : null;
        }
        return at;
    }

    /** The entry itself where the key in it is not written. */
    private static @Nullable ConfigValue valueInList(ConfigObject written, Matcher path) {
        int index = Integer.parseInt(path.group(2));
        if (written.get(path.group(1)) instanceof ConfigList list
                && index < list.size()
                && list.get(index) instanceof ConfigObject entry) {
            return entry.getOrDefault(path.group(3), entry);
        }
        return null;
    }

    private Config parseText(String text) {
        try {
            return ConfigFactory.parseString(
                    text,
                    ConfigParseOptions.defaults()
                            .setOriginDescription(String.valueOf(file.getFileName()))
                            .setIncluder(new StrictIncluder(true)));
        } catch (com.typesafe.config.ConfigException e) {
            fileWasRead = false;
            report(e, "", "syntax error: ");
            return ConfigFactory.empty();
        }
    }

    private Config parseFile() {
        if (given != null) {
            return parseText(given);
        }
        if (!Files.isRegularFile(file) || !Files.isReadable(file) || isBinary()) {
            fileWasRead = false;
            problems.inFile(
                    "",
                    "",
                    whyUnreadable(),
                    "check the path, or try sample-configs/quickstart.conf");
            return ConfigFactory.empty();
        }
        try {
            return ConfigFactory.parseFile(
                    file.toFile(),
                    ConfigParseOptions.defaults()
                            .setAllowMissing(false)
                            .setIncluder(new StrictIncluder(true)));
        } catch (com.typesafe.config.ConfigException e) {
            fileWasRead = false;
            boolean isInclude = e instanceof com.typesafe.config.ConfigException.IO;
            report(e, "", isInclude ? "" : "syntax error: ");
            return ConfigFactory.empty();
        }
    }

    private String whyUnreadable() {
        if (Files.isDirectory(file)) {
            return "this is a folder, not a configuration file";
        }
        if (!Files.exists(file)) {
            return "no such file";
        }
        return Files.isReadable(file)
                ? "this is a binary file, not a configuration file"
                : "this file cannot be read";
    }

    /** Text has no zero byte. What is wrong with other bytes would be shown with the bytes. */
    private boolean isBinary() {
        try (InputStream in = Files.newInputStream(file)) {
            for (byte b : in.readNBytes(BEGINNING)) {
                if (b == 0) {
                    return true;
                }
            }
            return false;
        } catch (IOException _) {
            return false; // its reader says why
        }
    }

    private Config parseOverride(String override) {
        ConfigParseOptions named =
                ConfigParseOptions.defaults().setOriginDescription("--set " + override);
        int equals = override.indexOf('=');
        if (equals < 1) {
            keysWithoutValue.add(override.strip());
            problems.at(
                    ConfigOriginFactory.newSimple("--set " + override),
                    "",
                    "key=value",
                    "\"" + override + "\"",
                    "write for example --set schedule.kind=terapipe");
            return ConfigFactory.empty();
        }
        String key = override.substring(0, equals).strip();
        String value = override.substring(equals + 1).strip();
        try {
            return ConfigFactory.parseString(key + " = " + value, named);
        } catch (com.typesafe.config.ConfigException e) {
            // not HOCON: the text itself is meant, such as texts/*.txt
            return ConfigFactory.parseString(
                    ConfigUtil.quoteString(key).replace(".", "\".\"")
                            + " = "
                            + ConfigUtil.quoteString(value),
                    named);
        }
    }

    private void report(com.typesafe.config.ConfigException e, String expected, String what) {
        String message = String.valueOf(e.getMessage());
        ConfigOrigin origin = e.origin();
        if (origin == null) {
            problems.inFile("", expected, what + message, "");
        } else {
            // the message begins with its place once more
            String place = origin.description() + ": ";
            String bare = message.startsWith(place) ? message.substring(place.length()) : message;
            problems.at(origin, "", expected, what + bare, "");
        }
    }
}
