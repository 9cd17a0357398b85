package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ConfigException;
import dev.penstock.runtime.config.Problem;
import dev.penstock.runtime.dashboard.DashboardServer;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Shows a run in a browser. */
@Command(
        name = "ui",
        description = {
            "Shows a run in a browser, live or long gone, from its event log.",
            "The page is for browsers of this machine and changes nothing. Ctrl-C ends it."
        },
        footer = "  penstock ui runs/quickstart-1")
final class UiCommand extends PenstockCommand {
    @Parameters(paramLabel = "RUN_DIR", description = "Directory of a run.")
    private Path runDirectory = Path.of("");

    @Option(
            names = "--port",
            paramLabel = "PORT",
            defaultValue = "0",
            description = "Port of loopback; default: any that is free.")
    private int port;

    @Override
    public Integer call() throws InterruptedException {
        RunDirectory directory = new RunDirectory(runDirectory);
        check(directory);
        Interrupts interrupts = Interrupts.install();
        var end = new CountDownLatch(1);
        interrupts.onInterrupt(end::countDown);
        try (DashboardServer dashboard = DashboardServer.start(directory, port)) {
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

    private void check(RunDirectory directory) {
        if (port < 0 || port > 65_535) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "--port",
                                    "0 to 65535",
                                    String.valueOf(port),
                                    "leave it out to take any that is free")));
        }
        if (!Files.isReadable(directory.events())) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "RUN_DIR",
                                    "the directory of a run, with "
                                            + directory.events().getFileName(),
                                    directory.path()
                                            + (Files.isDirectory(directory.path())
                                                    ? " without one"
                                                    : ", which does not exist"),
                                    "use the directory that the run printed when it began")));
        }
    }
}
