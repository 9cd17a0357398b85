package dev.penstock.runtime.cli.checkpoint;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

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
        footerHeading = "%nExample:%n",
        footer = "  penstock checkpoint inspect runs/quickstart-1")
public final class CheckpointCommand {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;
}
