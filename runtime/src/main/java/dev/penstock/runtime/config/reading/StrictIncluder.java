package dev.penstock.runtime.config.reading;

import com.typesafe.config.ConfigIncludeContext;
import com.typesafe.config.ConfigIncluder;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigParseable;

/**
 * Includes files beside the including one; unlike the library's own, misses those that are not
 * there.
 */
final class StrictIncluder implements ConfigIncluder {
    @Override
    public ConfigIncluder withFallback(ConfigIncluder fallback) {
        return this;
    }

    @Override
    public ConfigObject include(ConfigIncludeContext context, String what) {
        ConfigParseable file = context.relativeTo(what);
        if (file == null) {
            throw new com.typesafe.config.ConfigException.IO(
                    com.typesafe.config.ConfigOriginFactory.newSimple("include \"" + what + "\""),
                    "only a file can include another");
        }
        return file.parse(context.parseOptions().setAllowMissing(false).setIncluder(this));
    }
}
