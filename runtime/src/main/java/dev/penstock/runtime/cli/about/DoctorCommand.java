package dev.penstock.runtime.cli.about;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.speed.MachineSpeed;
import dev.penstock.runtime.speed.SpeedReport;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Shows what this machine offers. */
@Command(
        name = "doctor",
        description = {
            "Shows what this machine offers: Java, CPU, oneDNN, GPUs, memory.",
            "With --speed it is measured in less than a minute: matrix products, memory, a tensor's"
                    + " way from rank to rank, the disk; and what trainings may reach with that,"
                    + " as penstock plan counts."
        },
        footer = {
            "  penstock doctor --json",
            "  penstock doctor --speed",
            "  penstock doctor --speed --device cuda:0 --runs /data/runs",
        })
public final class DoctorCommand extends PenstockCommand {
    private static final long NANOS_PER_FIGURE = Duration.ofMillis(1000).toNanos();
    private static final long LIMIT_SECONDS = 15;

    @Option(names = "--speed", description = "Measure how fast it is.")
    private boolean speed;

    @Option(
            names = "--device",
            paramLabel = "KIND",
            description = "With --speed: auto, cpu, reference, cuda or cuda:N (default: auto).")
    private @Nullable String device;

    @Option(
            names = "--runs",
            paramLabel = "DIR",
            description = "With --speed: the folder whose disk is measured (default: runs).")
    private @Nullable Path runs;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        DeviceSettings settings = settings();
        if (speed) {
            measure(settings);
            return ExitCode.OK;
        }
        MachineReport report = MachineReport.ofThisMachine();
        if (json) {
            printJson(report);
        } else {
            out().print(report.text());
            out().flush();
        }
        return ExitCode.OK;
    }

    private DeviceSettings settings() {
        List<Problem> problems = new ArrayList<>();
        if (!speed && device != null) {
            problems.add(Problem.atOption("--device", "--speed beside it", "none", ""));
        }
        if (!speed && runs != null) {
            problems.add(Problem.atOption("--runs", "--speed beside it", "none", ""));
        }
        if (device != null && !DeviceKind.isKind(device)) {
            problems.add(
                    Problem.atOption(
                            "--device", "auto, cpu, reference, cuda or cuda:N", device, ""));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        return MachineSpeed.settings(device == null ? DeviceKind.AUTO : new DeviceKind(device));
    }

    private void measure(DeviceSettings settings) {
        Path folder = runs == null ? Path.of("runs") : runs;
        SpeedReport report;
        try {
            report =
                    new MachineSpeed(
                                    settings,
                                    folder,
                                    NANOS_PER_FIGURE,
                                    LIMIT_SECONDS,
                                    line -> {
                                        err().println("measured " + line);
                                        err().flush();
                                    })
                            .measure();
        } catch (DeviceException e) {
            throw new ConfigException(
                    List.of(Problem.atOption("--device", "", String.valueOf(e.getMessage()), "")));
        }
        if (json) {
            printJson(report);
        } else {
            SpeedTable.lines(report).forEach(out()::println);
            out().flush();
        }
    }
}
