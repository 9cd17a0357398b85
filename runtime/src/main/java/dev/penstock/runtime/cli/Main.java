package dev.penstock.runtime.cli;

import picocli.CommandLine;

/** Where the program starts. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        System.exit(commandLine().execute(arguments));
    }

    /** All commands with their error handling; a test sets its own writers on it. */
    static CommandLine commandLine() {
        CommandLine commandLine = new CommandLine(new PenstockCli());
        commandLine.setCaseInsensitiveEnumValuesAllowed(true);
        commandLine.setUsageHelpAutoWidth(true);
        commandLine.setUsageHelpLongOptionsMaxWidth(32);
        commandLine.setExecutionExceptionHandler(new FailureHandler());
        commandLine.setParameterExceptionHandler(new MisuseHandler());
        return commandLine;
    }
}
