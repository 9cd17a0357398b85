package dev.penstock.runtime.launch;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;

/** Version and commit, as the build wrote them down. */
public final class BuiltVersion {
    private static final String FILE = "/dev/penstock/runtime/cli/version.properties";

    private BuiltVersion() {}

    /**
     * Such as {@code 0.1.0-SNAPSHOT (commit 4594558)}; {@code unknown} where another build than the
     * project's own compiled the classes.
     */
    public static String text() {
        Properties built = new Properties();
        try (InputStream file = BuiltVersion.class.getResourceAsStream(FILE)) {
            if (file == null) {
                return "unknown";
            }
            built.load(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        String commit = built.getProperty("commit", "");
        return built.getProperty("version") + (commit.isEmpty() ? "" : " (commit " + commit + ")");
    }
}
