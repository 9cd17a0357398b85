package dev.penstock.runtime.cli.command;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DraftConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The arguments of commands that read a configuration. */
public final class ConfigArguments {
    @Parameters(
            index = "0",
            paramLabel = "CONFIG",
            description = "A file such as sample-configs/quickstart.conf.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path file;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "Overrides a key of the configuration; may be repeated.")
    private List<String> overrides = new ArrayList<>();

    public Path file() {
        return file;
    }

    public List<String> overrides() {
        return overrides;
    }

    /** Reads the configuration as far as that is possible. */
    public DraftConfig draft() {
        return draft(overrides);
    }

    /** Reads the configuration under other overrides. */
    public DraftConfig draft(List<String> others) {
        return ConfigLoader.draft(file, others);
    }
}
