package dev.penstock.runtime.cli.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.RunStanding;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.config.reading.BadInputException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Ends a run of a cluster. */
@Command(
        name = "stop",
        description = "Asks a run of a cluster to finish its step, save and end.",
        footer = "  penstock stop quickstart-1 --cluster 127.0.0.1:2551")
public final class StopCommand extends PenstockCommand {
    @Mixin private ClusterRunArguments where = new ClusterRunArguments();

    @Override
    public Integer call() {
        try (ClusterClient client = where.connect()) {
            return switch (client.stop(where.run())) {
                case ClusterRuns.NotThere notThere ->
                        throw new BadInputException(FollowRun.notThere(notThere));
                case ClusterRuns.Unkept unkept ->
                        throw new BadInputException(unkept.line() + "; try again then");
                case ClusterRuns.Stopping(RunStanding standing) -> {
                    out().printf(
                                    standing.state().hasEnded()
                                            ? "%s had ended after step %d%n"
                                            : "%s finishes its step after step %d and ends%n",
                                    where.run(),
                                    standing.step());
                    yield ExitCode.OK;
                }
            };
        }
    }
}
