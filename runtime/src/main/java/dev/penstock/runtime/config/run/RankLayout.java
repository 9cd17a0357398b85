package dev.penstock.runtime.config.run;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigRenderOptions;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.zip.CRC32;

/** What the work and the memory of every rank follow from, as a short text to compare. */
public final class RankLayout {
    private static final List<String> DECIDING =
            List.of(
                    "model",
                    "pipeline",
                    "parallel",
                    "schedule",
                    "batch",
                    "device",
                    "data-plane",
                    "recovery.mirror");

    private RankLayout() {}

    /**
     * The same for configurations whose ranks do the same work with the same memory: eight
     * hexadecimal digits.
     *
     * @param resolved a whole configuration
     */
    public static String of(String resolved) {
        Config config = ConfigFactory.parseString(resolved);
        CRC32 sum = new CRC32();
        for (String path : DECIDING) {
            if (config.hasPath(path)) {
                String value = config.getValue(path).render(ConfigRenderOptions.concise());
                sum.update((path + value).getBytes(StandardCharsets.UTF_8));
            }
        }
        return "%08x".formatted(sum.getValue());
    }
}
