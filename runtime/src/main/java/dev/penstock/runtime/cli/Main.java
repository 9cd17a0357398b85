package dev.penstock.runtime.cli;

import dev.penstock.runtime.cli.command.FailureHandler;
import dev.penstock.runtime.cli.command.MisuseHandler;
import picocli.CommandLine;

/** Where the program starts. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        CommandLine commandLine = commandLine(arguments);
        int code;
        try {
            code = commandLine.execute(arguments);
        } catch (Error e) { // picocli hands on exceptions only; no heap left is an error
            code = FailureHandler.unexpected(commandLine.getErr(), e);
        }
        System.exit(code);
    }

    /**
     * The commands with their error handling; a test sets its own writers on it.
     *
     * @param arguments what will be executed, when it is known: no other command is there then.
     *     Without them, all are
     */
    public static CommandLine commandLine(String... arguments) {
        CommandLine commandLine = new CommandLine(new PenstockCli());
        PenstockCli.commandsFor(arguments).forEach(commandLine::addSubcommand);
        commandLine.setCaseInsensitiveEnumValuesAllowed(true);
        commandLine.setUsageHelpAutoWidth(true);
        commandLine.setUsageHelpLongOptionsMaxWidth(32);
        commandLine.setExecutionExceptionHandler(new FailureHandler());
        commandLine.setParameterExceptionHandler(new MisuseHandler());
        return commandLine;
    }
}
