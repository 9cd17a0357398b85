package dev.penstock.runtime.cli.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.NodeOffer;
import dev.penstock.actors.cluster.RunStanding;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.metrics.Quantities;
import java.time.Duration;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Lists what a cluster does. */
@Command(
        name = "runs",
        description = "Lists the runs of a cluster and the nodes that can take more.",
        footer = "  penstock runs --cluster 127.0.0.1:2551 --json")
public final class RunsCommand extends PenstockCommand {
    @Mixin private ClusterArguments seeds = new ClusterArguments();

    @Option(names = "--json", description = "One JSON document instead of text.")
    private boolean json;

    @Override
    public Integer call() {
        try (ClusterClient client = seeds.connect()) {
            ClusterRuns.RunList list = client.list();
            if (json) {
                printJson(list);
            } else {
                print(list);
            }
            return ExitCode.OK;
        }
    }

    private void print(ClusterRuns.RunList list) {
        for (RunStanding run : list.runs()) {
            out().printf(
                            "%-24s %-10s step %d/%d  %s  %s%s%n",
                            run.run(),
                            run.state().name().toLowerCase(Locale.ROOT),
                            run.step(),
                            run.lastStep(),
                            Quantities.clock(Duration.ofMillis(run.ageMs())),
                            run.directory(),
                            run.detail().isEmpty() ? "" : "\n    " + run.detail());
        }
        for (ClusterRuns.Unkept run : list.unkept()) {
            out().printf("%-24s not kept%n    %s%n", run.run(), run.line());
        }
        if (list.looking()) {
            out().println("the seed still looks for runs of the seed before it");
        } else if (list.runs().isEmpty() && list.unkept().isEmpty()) {
            out().println("no runs");
        }
        for (NodeOffer node : list.nodes()) {
            out().printf(
                            "node %s: %.1f GiB for ranks, %d cores%n",
                            node.text(), node.memoryBytes() / (double) (1L << 30), node.cores());
        }
    }
}
