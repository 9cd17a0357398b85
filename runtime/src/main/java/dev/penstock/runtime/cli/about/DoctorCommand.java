package dev.penstock.runtime.cli.about;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Shows what this machine offers. */
@Command(
        name = "doctor",
        description = "Shows what this machine offers: Java, CPU, oneDNN, GPUs, memory.",
        footer = "  penstock doctor --json")
public final class DoctorCommand extends PenstockCommand {
    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        MachineReport report = MachineReport.ofThisMachine();
        if (json) {
            printJson(report);
        } else {
            out().print(report.text());
            out().flush();
        }
        return ExitCode.OK;
    }
}
