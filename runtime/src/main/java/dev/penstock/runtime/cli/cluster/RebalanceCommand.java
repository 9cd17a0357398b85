package dev.penstock.runtime.cli.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.config.reading.BadInputException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Has a run of a cluster use nodes that joined after its start. */
@Command(
        name = "rebalance",
        description = {
            "Spreads a run's ranks over all nodes that have room now.",
            "It saves its step first, so that no step is lost or done again."
        },
        footer = "  penstock rebalance quickstart-1 --cluster 127.0.0.1:2551")
public final class RebalanceCommand extends PenstockCommand {
    @Mixin private ClusterRunArguments where = new ClusterRunArguments();

    @Override
    public Integer call() {
        try (ClusterClient client = where.connect()) {
            return switch (client.rebalance(where.run())) {
                case ClusterRuns.NotThere notThere ->
                        throw new BadInputException(FollowRun.notThere(notThere));
                case ClusterRuns.Unkept unkept ->
                        throw new BadInputException(unkept.line() + "; try again then");
                case ClusterRuns.Rebalancing(String name, String line) -> {
                    out().printf("%s: %s%n", name, line);
                    yield ExitCode.OK;
                }
            };
        }
    }
}
