package dev.penstock.runtime.cli.about;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Commands about configurations. */
@Command(
        name = "config",
        description = "Checks configurations and lists their keys.",
        subcommands = {ConfigCheckCommand.class, ConfigKeysCommand.class},
        footerHeading = "%nExample:%n",
        footer = "  penstock config check sample-configs/quickstart.conf")
public final class ConfigCommand {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;
}
