package dev.penstock.runtime.cli.checkpoint;

import dev.penstock.runtime.cli.command.CommandWithHelp;
import picocli.CommandLine.Command;

/** Commands about checkpoints. */
@Command(
        name = "checkpoint",
        description =
                "Shows what is in a checkpoint, whether it is whole, and writes it in other forms.",
        subcommands = {
            CheckpointInspectCommand.class,
            CheckpointVerifyCommand.class,
            CheckpointExportCommand.class,
            CheckpointConvertCommand.class,
        },
        footer = "  penstock checkpoint inspect runs/quickstart-1")
public final class CheckpointCommand extends CommandWithHelp {}
