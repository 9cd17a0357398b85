package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.launch.Interrupts;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Follows a run of a cluster. */
@Command(
        name = "attach",
        description = {
            "Follows a run of a cluster, as train --cluster does.",
            "Ctrl-C leaves it alone again; the exit code is that of the run when it ends."
        },
        footer = "  penstock attach quickstart-1 --cluster 127.0.0.1:2551")
public final class AttachCommand extends PenstockCommand {
    @Mixin private ClusterRunArguments where = new ClusterRunArguments();

    @Override
    public Integer call() {
        Interrupts interrupts = Interrupts.install();
        interrupts.onInterrupt(() -> Runtime.getRuntime().exit(ExitCode.INTERRUPTED));
        try (ClusterClient client = where.connect()) {
            return new FollowRun(client, where.run(), where.seeds(), out(), err()).call(interrupts);
        }
    }
}
