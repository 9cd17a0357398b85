package dev.penstock.runtime.cli.model;

import dev.penstock.runtime.cli.command.CommandWithHelp;
import picocli.CommandLine.Command;

/** Commands about models. */
@Command(
        name = "model",
        description = "Shows what a model is made of, in whatever form it lies there.",
        subcommands = ModelInspectCommand.class,
        footer = "  penstock model inspect gpt")
public final class ModelCommand extends CommandWithHelp {}
