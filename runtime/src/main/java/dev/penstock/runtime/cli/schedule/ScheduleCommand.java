package dev.penstock.runtime.cli.schedule;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

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
        footerHeading = "%nExample:%n",
        footer = "  penstock schedule show --kind 1f1b --ranks 4 --micro-batches 8")
public final class ScheduleCommand {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    private boolean help;
}
