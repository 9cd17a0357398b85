package dev.penstock.runtime.cli.command;

import java.io.PrintWriter;
import picocli.CommandLine;
import picocli.CommandLine.IParameterExceptionHandler;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** Answers a command line that cannot be understood: what is wrong, and where to read on. */
public final class MisuseHandler implements IParameterExceptionHandler {
    @Override
    public int handleParseException(ParameterException exception, String[] arguments) {
        CommandLine command = exception.getCommandLine();
        PrintWriter err = command.getErr();
        err.println("penstock: " + Meant.problem(exception).orElse(exception.getMessage()));
        UnmatchedArgumentException.printSuggestions(exception, err);
        err.println("try " + command.getCommandSpec().qualifiedName() + " --help");
        err.flush();
        return ExitCode.BAD_INPUT;
    }
}
