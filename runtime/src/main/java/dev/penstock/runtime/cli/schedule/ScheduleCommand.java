package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.cli.command.CommandWithHelp;
import picocli.CommandLine.Command;

/** Commands about the orders in which ranks work. */
@Command(
        name = "schedule",
        description =
                "Makes, proves, times and draws the order in which the ranks of a pipeline work.",
        subcommands = {
            ScheduleGenerateCommand.class,
            ScheduleShowCommand.class,
            ScheduleValidateCommand.class,
            ScheduleSimulateCommand.class,
            ScheduleDrawCommand.class,
            ScheduleConvertCommand.class,
            ScheduleDiffCommand.class,
            ScheduleCompareCommand.class,
            ScheduleSlicesCommand.class,
        },
        footer = "  penstock schedule show --kind 1f1b --ranks 4 --micro-batches 8")
public final class ScheduleCommand extends CommandWithHelp {}
