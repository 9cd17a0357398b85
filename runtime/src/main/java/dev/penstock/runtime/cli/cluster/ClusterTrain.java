package dev.penstock.runtime.cli.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.cluster.Submission;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.Interrupts;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Submits a run to a cluster and follows it. */
public final class ClusterTrain {
    private final DraftConfig draft;
    private final ClusterArguments seeds;
    private final List<Problem> problems;
    private final PrintWriter out;
    private final PrintWriter err;

    /**
     * @param problems found so far, told with those that are found here
     */
    public ClusterTrain(
            DraftConfig draft,
            ClusterArguments seeds,
            List<Problem> problems,
            PrintWriter out,
            PrintWriter err) {
        this.draft = draft;
        this.seeds = seeds;
        this.problems = problems;
        this.out = out;
        this.err = err;
    }

    /** Returns the exit code of the run, or interrupted where it was left alone. */
    public int call(Optional<Path> init, boolean resume) {
        Optional<List<Problem>> besideModel =
                resume ? draft.problemsBesideMissingModel() : Optional.empty();
        List<Problem> all = new ArrayList<>(besideModel.orElseGet(draft::problems));
        all.addAll(problems);
        if (!all.isEmpty()) {
            throw new ConfigException(all);
        }
        RunConfig config = draft.draft().config();
        Submission given = Submission.of(config, init, resume);
        Submission submission = besideModel.isPresent() ? given.withModelOfRun() : given;
        Interrupts interrupts = Interrupts.install();
        interrupts.onInterrupt(() -> Runtime.getRuntime().exit(ExitCode.INTERRUPTED));
        try (ClusterClient client = seeds.connect()) {
            return switch (client.submit(submission)) {
                case ClusterRuns.Refused(String reason) -> throw new BadInputException(reason);
                case ClusterRuns.Accepted(String run) -> {
                    out.printf("the cluster trains %s%n", run);
                    out.flush();
                    yield new FollowRun(client, run, seeds.seeds(), out, err).call(interrupts);
                }
            };
        }
    }
}
