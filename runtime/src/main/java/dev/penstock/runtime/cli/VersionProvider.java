package dev.penstock.runtime.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Objects;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/** Version and commit, as the build wrote them down. */
final class VersionProvider implements IVersionProvider {
    @Override
    public String[] getVersion() {
        return new String[] {"penstock " + version()};
    }

    /** Such as {@code 0.1.0-SNAPSHOT (commit 4594558)}. */
    static String version() {
        Properties built = new Properties();
        try (InputStream file =
                Objects.requireNonNull(
                        VersionProvider.class.getResourceAsStream("version.properties"))) {
            built.load(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        String commit = built.getProperty("commit", "");
        return built.getProperty("version") + (commit.isEmpty() ? "" : " (commit " + commit + ")");
    }
}
