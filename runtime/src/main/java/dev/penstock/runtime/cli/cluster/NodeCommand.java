package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.NodeProcess;
import dev.penstock.runtime.config.node.NodeConfig;
import dev.penstock.runtime.config.node.NodeLoader;
import dev.penstock.runtime.launch.Interrupts;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Takes part in a cluster. */
@Command(
        name = "node",
        description = {
            "Takes part in a cluster: as a seed, which keeps runs, or as a worker, which hosts"
                    + " ranks.",
            "Ctrl-C leaves the cluster; a seed lets its runs finish their step and save first."
        },
        footer = {
            "  penstock node sample-configs/cluster/seed.conf",
            "  penstock node sample-configs/cluster/worker.conf --cluster 127.0.0.1:2551",
            "  penstock train sample-configs/quickstart.conf --cluster 127.0.0.1:2551",
        })
public final class NodeCommand extends PenstockCommand {
    @Parameters(
            index = "0",
            paramLabel = "CONFIG",
            description = "A file such as sample-configs/cluster/worker.conf.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path file;

    @Option(
            names = "--cluster",
            paramLabel = "HOST:PORT",
            description = "A seed node to join, in place of cluster.seeds; may be repeated.")
    private List<String> seeds = new ArrayList<>();

    @Option(names = "--seed", hidden = true, description = "The former name of --cluster.")
    private List<String> formerSeeds = new ArrayList<>();

    @Option(
            names = "--port",
            paramLabel = "PORT",
            description = "Where to listen, in place of cluster.port; 0 for a free port.")
    private @Nullable Integer port;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "Overrides a key of the file; may be repeated.")
    private List<String> overrides = new ArrayList<>();

    @Option(
            names = "--end-with-input",
            hidden = true,
            description = "End with the standard input, and leave signals to the parent process.")
    private boolean endsWithInput;

    @Override
    public Integer call() {
        NodeConfig config = NodeLoader.load(file, allOverrides());
        var end = new CompletableFuture<Void>();
        if (endsWithInput) {
            Interrupts.leaveToParent();
            Thread.ofVirtual().start(() -> endWithInput(end));
        } else {
            Interrupts.install().onInterrupt(() -> end.complete(null));
            Interrupts.outliveTerminal();
        }
        new NodeProcess(config, this::say).run(end);
        return ExitCode.OK;
    }

    private List<String> allOverrides() {
        List<String> all = new ArrayList<>(overrides);
        List<String> joined = Stream.concat(seeds.stream(), formerSeeds.stream()).toList();
        if (!joined.isEmpty()) {
            all.add(
                    "cluster.seeds="
                            + joined.stream()
                                    .map(seed -> '"' + seed + '"')
                                    .collect(Collectors.joining(",", "[", "]")));
        }
        if (port != null) {
            all.add("cluster.port=" + port);
        }
        return all;
    }

    private static void endWithInput(CompletableFuture<Void> end) {
        try {
            while (System.in.read() >= 0) {
                Thread.onSpinWait(); // nothing is ever said; only the end matters
            }
        } catch (IOException e) {
            // as good as the end
        }
        end.complete(null);
    }

    private synchronized void say(String line) {
        out().println(line);
        out().flush();
    }
}
