package dev.penstock.runtime.cli.data;

import dev.penstock.runtime.cli.command.CommandWithHelp;
import picocli.CommandLine.Command;

/** Commands about prepared tokens. */
@Command(
        name = "data",
        description = "Encodes texts once, so that runs start at once, and checks the result.",
        subcommands = {DataPrepareCommand.class, DataVerifyCommand.class},
        footer = "  penstock data prepare --tokenizer gpt2 --output tokens my-texts")
public final class DataCommand extends CommandWithHelp {}
