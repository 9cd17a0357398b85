package dev.penstock.runtime.cli.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.NewsReader;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.Terminal;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.cluster.FollowEvent;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.ProgressListener;
import dev.penstock.schedules.ir.Schedule;
import java.io.PrintWriter;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import org.jspecify.annotations.Nullable;

/** Shows a cluster's run as a local one is shown, until it ends or the user has seen enough. */
final class FollowRun implements NewsReader.Reader {
    private final ClusterClient client;
    private final String run;
    private final List<String> seeds;
    private final PrintWriter out;
    private final PrintWriter err;
    private @Nullable ProgressListener progress;
    private final LastSave lastSave = new LastSave();
    private @Nullable NewsReader reader;
    private @Nullable Integer exitCode;

    FollowRun(
            ClusterClient client,
            String run,
            List<String> seeds,
            PrintWriter out,
            PrintWriter err) {
        this.client = client;
        this.run = run;
        this.seeds = seeds;
        this.out = out;
        this.err = err;
    }

    /** Follows; returns the exit code: as of a local run, or interrupted where it was left. */
    int call(Interrupts interrupts) {
        BlockingQueue<FollowEvent> events = client.follow(run);
        interrupts.onInterrupt(() -> events.add(new FollowEvent.Detached()));
        try {
            while (exitCode == null) {
                on(events.take());
            }
            return exitCode;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return ExitCode.INTERRUPTED;
        } finally {
            closeProgress();
        }
    }

    private void on(FollowEvent event) {
        switch (event) {
            case FollowEvent.Began(ClusterRuns.Following known, Schedule schedule) ->
                    onBegan(known, schedule);
            case FollowEvent.Heard heard -> {
                if (reader != null) {
                    reader.read(heard.news());
                }
            }
            case FollowEvent.Contact(String line) -> warn(line);
            case FollowEvent.GivenUp(String line) -> {
                closeProgress();
                warn(
                        "%s: gave up; the run goes on if its cluster does, and is taken up when a seed is back; penstock attach %s --cluster %s"
                                .formatted(line, run, String.join(" --cluster ", seeds)));
                exitCode = ExitCode.FAILURE;
            }
            case FollowEvent.NotKept(String line) -> {
                closeProgress();
                warn(
                        "%s: gave up; to follow it once a seed keeps it: penstock attach %s --cluster %s"
                                .formatted(line, run, String.join(" --cluster ", seeds)));
                exitCode = ExitCode.FAILURE;
            }
            case FollowEvent.NotThere(ClusterRuns.NotThere answer) -> {
                warn(notThere(answer));
                exitCode = ExitCode.BAD_INPUT;
            }
            case FollowEvent.Detached _ -> onDetached();
        }
    }

    private void onBegan(ClusterRuns.Following known, Schedule schedule) {
        known.banner().forEach(out::println);
        out.flush();
        var meter = new PipelineMeter(schedule, known.grid());
        ProgressListener shown =
                ProgressListener.of(
                        out,
                        Terminal.screen(),
                        0,
                        known.run(),
                        known.firstStep(),
                        known.lastStep(),
                        known.tokens(),
                        meter);
        progress = shown;
        reader =
                new NewsReader(
                        new ListenerFanOut(List.of(new Order(meter), shown, lastSave)), this);
    }

    /** What the run's ranks run, for whoever measures their steps. */
    private record Order(PipelineMeter meter) implements RunListener {
        @Override
        public void onRevised(PlanRevision revision, Schedule training, long completed) {
            meter.follow(training);
        }
    }

    /** Why the newest checkpoint is not the one that was last asked for. */
    private static final class LastSave implements RunListener {
        private @Nullable String unsaved;

        @Override
        public void onCheckpoint(long step, long bytes, long nanos) {
            unsaved = null;
        }

        @Override
        public void onCheckpointFailed(long step, String reason) {
            unsaved = "not saved after step %d: %s".formatted(step, reason);
        }
    }

    @Override
    public void onLine(String line) {
        out.println(line);
        out.flush();
    }

    @Override
    public void onEnded(RunOutcome outcome, String summary) {
        closeProgress();
        out.printf("%n%s%n", summary);
        out.flush();
        exitCode = ExitCode.of(outcome, err);
        if (lastSave.unsaved != null && exitCode != ExitCode.FAILURE) {
            warn("NOT SAVED: " + lastSave.unsaved);
            exitCode = ExitCode.FAILURE;
        }
    }

    private void onDetached() {
        closeProgress();
        String at = String.join(" --cluster ", seeds);
        out.printf(
                "%nthe run goes on without you: penstock attach %s --cluster %s%n"
                        + "to end it: penstock stop %s --cluster %s%n",
                run, at, run, at);
        out.flush();
        exitCode = ExitCode.INTERRUPTED;
    }

    private void closeProgress() {
        if (progress != null) {
            progress.close();
            progress = null;
        }
    }

    private void warn(String line) {
        err.println("penstock: " + line);
        err.flush();
    }

    /** What there is instead. */
    static String notThere(ClusterRuns.NotThere answer) {
        return "expected a run of this cluster, got %s; %s"
                .formatted(
                        answer.run(),
                        answer.others().isEmpty()
                                ? "it has none"
                                : "it has " + String.join(", ", answer.others()));
    }
}
