package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.page.ConfigPage;
import dev.penstock.runtime.config.page.ConfigReference;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Lists every key of the configuration. */
@Command(
        name = "keys",
        description = "Lists every key with its meaning, what it takes and its default.",
        footer = {"  penstock config keys | less", "  penstock config keys --markdown"})
final class ConfigKeysCommand extends PenstockCommand {
    @Option(
            names = "--markdown",
            description = "As a page, with the keys of nodes and of clusters to plan for.")
    private boolean markdown;

    @Override
    public Integer call() {
        out().print(markdown ? ConfigPage.markdown() : ConfigReference.text());
        out().flush();
        return ExitCode.OK;
    }
}
