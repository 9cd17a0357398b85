package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ConfigReference;
import picocli.CommandLine.Command;

/** Lists every key of the configuration. */
@Command(
        name = "keys",
        description = "Lists every key with its meaning, what it takes and its default.",
        footer = "  penstock config keys | less")
final class ConfigKeysCommand extends PenstockCommand {
    @Override
    public Integer call() {
        out().print(ConfigReference.text());
        out().flush();
        return ExitCode.OK;
    }
}
