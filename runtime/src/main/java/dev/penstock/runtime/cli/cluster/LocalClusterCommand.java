package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.LocalCluster;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.training.RunFailedException;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** A cluster on one machine. */
@Command(
        name = "local-cluster",
        description = {
            "Starts seeds and workers as processes of this machine, for trying a cluster out.",
            "Kill one and see what becomes of a run: it is told and not started again, and the"
                    + " cluster goes on until its last seed or its last worker is gone.",
            "Ctrl-C ends them all; none outlives this command."
        },
        footer = {
            "  penstock local-cluster --nodes 2",
            "  penstock train sample-configs/quickstart.conf --cluster 127.0.0.1:2551",
        })
public final class LocalClusterCommand extends PenstockCommand {
    @Option(
            names = "--nodes",
            paramLabel = "N",
            defaultValue = "2",
            description = "Workers; default: 2.")
    private int nodes;

    @Option(
            names = "--seeds",
            paramLabel = "N",
            defaultValue = "1",
            description = "Seeds; default: 1.")
    private int seeds;

    @Option(
            names = "--port",
            paramLabel = "PORT",
            defaultValue = "2551",
            description = "Of the first seed; the others follow. 0 for free ones; default: 2551.")
    private int port;

    @Option(
            names = "--runs",
            paramLabel = "DIR",
            defaultValue = "runs",
            description = "Where run directories are made; default: runs.")
    @SuppressWarnings("NullAway.Init") // has a default
    private Path runs;

    @Override
    public Integer call() {
        if (nodes < 1 || nodes > 512 || seeds < 1 || seeds > 7) {
            throw new BadInputException(
                    "expected --nodes from 1 to 512 and --seeds from 1 to 7, got %d and %d"
                            .formatted(nodes, seeds));
        }
        var end = new CompletableFuture<Void>();
        Interrupts.install().onInterrupt(() -> end.complete(null));
        Interrupts.outliveTerminal();
        var layout = new LocalCluster.Layout(seeds, nodes, port, runs.toAbsolutePath());
        try (LocalCluster cluster = LocalCluster.start(layout, this::say)) {
            say("try: penstock train sample-configs/quickstart.conf --cluster " + cluster.seed());
            CompletableFuture<String> broken = cluster.broken();
            CompletableFuture.anyOf(end, broken).join();
            if (!end.isDone()) {
                throw new RunFailedException(broken.join());
            }
        }
        return ExitCode.OK;
    }

    private synchronized void say(String line) {
        out().println(line);
        out().flush();
    }
}
