package dev.penstock.runtime.cli.command;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** What every command has, also one that only groups others. */
@Command(footerHeading = "%nExample:%n", sortOptions = false)
public abstract class CommandWithHelp {
    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            order = 100,
            description = "Show this help.")
    @SuppressWarnings("unused") // picocli answers
    private boolean help;
}
