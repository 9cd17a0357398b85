package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.cli.command.CommandWithHelp;
import picocli.CommandLine.Command;

/** Commands about configurations. */
@Command(
        name = "config",
        description = "Checks configurations and lists their keys.",
        subcommands = {ConfigCheckCommand.class, ConfigKeysCommand.class},
        footer = "  penstock config check sample-configs/quickstart.conf")
public final class ConfigCommand extends CommandWithHelp {}
