package dev.penstock.runtime.cli.run;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.RunDirectoryArgument;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.dashboard.DashboardServer;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Shows a run in a browser. */
@Command(
        name = "ui",
        description = {
            "Shows a run in a browser, live or long gone, from its event log.",
            "The page is for browsers of this machine and changes nothing. Ctrl-C ends it."
        },
        footer = "  penstock ui runs/quickstart-1")
public final class UiCommand extends PenstockCommand {
    @Mixin private RunDirectoryArgument run = new RunDirectoryArgument();

    @Option(
            names = "--port",
            paramLabel = "PORT",
            defaultValue = "0",
            description = "Port of loopback; default: any that is free.")
    private int port;

    @Override
    public Integer call() throws InterruptedException {
        checkPort();
        RunDirectory directory = run.withEvents();
        try (DashboardServer dashboard = DashboardServer.start(directory, port)) {
            var end = new CountDownLatch(1);
            Interrupts.install().onInterrupt(end::countDown);
            out().println("dashboard: " + dashboard.url());
            out().flush();
            end.await();
            return ExitCode.OK;
        } catch (IOException e) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "--port",
                                    "a port that is free",
                                    port + " (" + e.getMessage() + ")",
                                    "leave it out to take any")));
        }
    }

    private void checkPort() {
        if (port < 0 || port > 65_535) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "--port",
                                    "0 to 65535",
                                    String.valueOf(port),
                                    "leave it out to take any that is free")));
        }
    }
}
