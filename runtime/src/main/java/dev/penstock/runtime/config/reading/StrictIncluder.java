package dev.penstock.runtime.config.reading;

import com.typesafe.config.ConfigException;
import com.typesafe.config.ConfigIncludeContext;
import com.typesafe.config.ConfigIncluder;
import com.typesafe.config.ConfigIncluderClasspath;
import com.typesafe.config.ConfigIncluderFile;
import com.typesafe.config.ConfigIncluderURL;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigOriginFactory;
import com.typesafe.config.ConfigParseable;
import java.io.File;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Includes files beside the including one, or with an absolute path; unlike the library's own,
 * misses those that are not there, and gets nothing from networks or from the program itself.
 */
final class StrictIncluder
        implements ConfigIncluder, ConfigIncluderFile, ConfigIncluderURL, ConfigIncluderClasspath {
    private final boolean filesToo;

    /** The files being included, each by the one before it; the configuration itself is not. */
    private final List<String> within;

    /**
     * @param filesToo whether anything may be included at all
     */
    StrictIncluder(boolean filesToo) {
        this(filesToo, List.of());
    }

    private StrictIncluder(boolean filesToo, List<String> within) {
        this.filesToo = filesToo;
        this.within = within;
    }

    @Override
    public ConfigIncluder withFallback(ConfigIncluder fallback) {
        return this;
    }

    @Override
    public ConfigObject include(ConfigIncludeContext context, String what) {
        ConfigParseable file = context.relativeTo(what);
        if (file == null || !filesToo) {
            throw refused("include \"" + what + "\"", "only a file can include another");
        }
        String path = file.origin().filename();
        // else it would be looked for on the class path
        if (path == null || !Files.isRegularFile(Path.of(path))) {
            throw refused("include \"" + what + "\"", "no such file");
        }
        List<String> deeper = new ArrayList<>(within);
        deeper.add(path);
        if (within.contains(path)) {
            String circle =
                    String.join(" includes ", deeper.subList(within.indexOf(path), deeper.size()));
            throw refused("include \"" + what + "\"", "a circle: " + circle);
        }
        return file.parse(
                context.parseOptions()
                        .setAllowMissing(false)
                        .setIncluder(new StrictIncluder(filesToo, deeper)));
    }

    @Override
    public ConfigObject includeFile(ConfigIncludeContext context, File what) {
        return include(context, what.getPath());
    }

    @Override
    public ConfigObject includeURL(ConfigIncludeContext context, URL what) {
        throw refused(
                "include url(\"" + what + "\")",
                "a configuration includes files only; fetch it and include the file");
    }

    @Override
    public ConfigObject includeResources(ConfigIncludeContext context, String what) {
        throw refused("include classpath(\"" + what + "\")", "a configuration includes files only");
    }

    private static ConfigException refused(String include, String why) {
        return new ConfigException.IO(ConfigOriginFactory.newSimple(include), why);
    }
}
