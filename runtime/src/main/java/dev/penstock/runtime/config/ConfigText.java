package dev.penstock.runtime.config;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigOriginFactory;
import com.typesafe.config.ConfigParseOptions;
import com.typesafe.config.ConfigUtil;
import com.typesafe.config.ConfigValue;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** From a file and overrides to one tree of values; what they mean is not looked at here. */
final class ConfigText {
    private final Path file;
    private final Problems problems;

    ConfigText(Path file, Problems problems) {
        this.file = file;
        this.problems = problems;
    }

    /** The file with the overrides over it and every {@code ${..}} replaced. */
    ConfigObject read(List<String> overrides) {
        Config merged = ConfigFactory.empty();
        for (String override : overrides) {
            merged = parseOverride(override).withFallback(merged);
        }
        merged = merged.withFallback(parseFile());
        problems.throwIfAny();
        try {
            return merged.resolve().root();
        } catch (com.typesafe.config.ConfigException e) {
            report(e, "every ${..} to name another key or an environment variable");
            problems.throwIfAny();
            throw e;
        }
    }

    /** The value at a path {@code section.name}, or null. */
    static @Nullable ConfigValue valueAt(ConfigObject written, String path) {
        int dot = path.indexOf('.');
        return written.get(path.substring(0, dot)) instanceof ConfigObject section
                ? section.get(path.substring(dot + 1))
                : null;
    }

    private Config parseFile() {
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            problems.inFile(
                    "",
                    "a configuration file",
                    Files.isDirectory(file) ? "a folder" : "nothing that can be read",
                    "check the path, or try sample-configs/quickstart.conf");
            return ConfigFactory.empty();
        }
        try {
            return ConfigFactory.parseFile(
                    file.toFile(),
                    ConfigParseOptions.defaults()
                            .setAllowMissing(false)
                            .setIncluder(new StrictIncluder()));
        } catch (com.typesafe.config.ConfigException e) {
            report(e, "HOCON text");
            return ConfigFactory.empty();
        }
    }

    private Config parseOverride(String override) {
        ConfigParseOptions named =
                ConfigParseOptions.defaults().setOriginDescription("--set " + override);
        int equals = override.indexOf('=');
        if (equals < 1) {
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

    private void report(com.typesafe.config.ConfigException e, String expected) {
        String message = String.valueOf(e.getMessage());
        if (e.origin() == null) {
            problems.inFile("", expected, message, "correct the text there");
        } else {
            problems.at(e.origin(), "", expected, message, "correct the text there");
        }
    }
}
