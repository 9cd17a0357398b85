package dev.penstock.runtime.cli.tokenizer;

import dev.penstock.runtime.cli.command.CommandWithHelp;
import picocli.CommandLine.Command;

/** Commands about tokenizers. */
@Command(
        name = "tokenizer",
        description = "Makes a tokenizer of one's own text.",
        subcommands = TokenizerTrainCommand.class,
        footer = "  penstock tokenizer train --vocabulary 8000 --output words my-texts")
public final class TokenizerCommand extends CommandWithHelp {}
