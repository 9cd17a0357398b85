package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import picocli.AutoComplete;
import picocli.CommandLine.Command;

/** Prints a completion script. */
@Command(
        name = "completion",
        description = "Prints a script that completes words in bash and zsh.",
        footer = "  source <(penstock completion)")
public final class CompletionCommand extends PenstockCommand {
    @Override
    public Integer call() {
        out().print(AutoComplete.bash("penstock", spec().root().commandLine()));
        out().flush();
        return ExitCode.OK;
    }
}
