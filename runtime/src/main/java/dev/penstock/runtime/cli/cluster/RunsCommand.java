package dev.penstock.runtime.cli.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.NodeOffer;
import dev.penstock.actors.cluster.RunStanding;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.runs.LocalRun;
import dev.penstock.runtime.runs.LocalRuns;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Lists runs: those in a folder, or those of a cluster. */
@Command(
        name = "runs",
        description = {
            "Lists the runs in a folder: what became of them, how far they are, how large.",
            "With --cluster, lists the runs of a cluster and the nodes that can take more."
        },
        footer = {
            "  penstock runs",
            "  penstock runs runs/quickstart-1 --json",
            "  penstock runs --cluster 127.0.0.1:2551 --json"
        })
public final class RunsCommand extends PenstockCommand {
    @Parameters(
            arity = "0..1",
            paramLabel = "FOLDER",
            description =
                    "Folder of run directories, or one of them; default: runs, as run.directory.")
    private @Nullable Path folder;

    @Mixin private ClusterArguments seeds = new ClusterArguments();

    @Option(names = "--json", description = "One JSON document instead of text.")
    private boolean json;

    @Override
    public Integer call() {
        if (!seeds.isGiven()) {
            return listHere();
        }
        if (folder != null) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "FOLDER and --cluster",
                                    "one of them",
                                    "both",
                                    "a cluster knows where its runs are")));
        }
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

    private int listHere() {
        Path place = folder == null ? Path.of("runs") : folder;
        List<LocalRun> runs = List.of();
        try {
            if (folder != null || Files.exists(place)) {
                runs = LocalRuns.in(place);
            }
        } catch (IOException e) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "FOLDER",
                                    "a folder of run directories that can be read",
                                    "%s (%s)".formatted(place, FileCause.withFile(e)),
                                    "name the run.directory of your configuration")));
        }
        RunTable table = new RunTable(runs, Instant.now());
        if (json) {
            printJson(table.rows());
        } else if (runs.isEmpty()) {
            out().println("no runs in " + place);
        } else {
            table.lines().forEach(out()::println);
        }
        return ExitCode.OK;
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
