package dev.penstock.runtime.cli.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.NewsReader;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.cluster.ClusterException;
import dev.penstock.runtime.cluster.FollowEvent;
import dev.penstock.runtime.cluster.ServeOrder;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.launch.Interrupts;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Has a cluster serve a model, until the user has had enough: then nothing of it is left. */
public final class ClusterServe {
    /** A pass that has begun is finished, and what is served is told to end. */
    private static final Duration END = Duration.ofSeconds(60);

    private final ClusterArguments seeds;
    private final PrintWriter out;
    private final PrintWriter err;

    public ClusterServe(ClusterArguments seeds, PrintWriter out, PrintWriter err) {
        this.seeds = seeds;
        this.out = out;
        this.err = err;
    }

    /** Returns 0 when it was ended by Ctrl-C, and a failure's exit code otherwise. */
    public int call(ServeOrder order) {
        Interrupts interrupts = Interrupts.install();
        interrupts.onInterrupt(() -> Runtime.getRuntime().exit(ExitCode.INTERRUPTED));
        try (ClusterClient client = seeds.connect()) {
            return switch (client.submit(order)) {
                case ClusterRuns.Refused(String reason) -> throw new BadInputException(reason);
                case ClusterRuns.Accepted(String run) -> {
                    out.printf("the cluster serves %s as %s%n", order.name(), run);
                    out.flush();
                    yield new Following(client, order, run).call(interrupts);
                }
            };
        }
    }

    /** One that is served. */
    private final class Following implements NewsReader.Reader, RunListener {
        private final ClusterClient client;
        private final ServeOrder order;
        private final String run;
        private final NewsReader reader = new NewsReader(this, this);
        private String node = "";
        private boolean works;
        private String told = "";
        private boolean stopping;
        private @Nullable Integer exitCode;

        Following(ClusterClient client, ServeOrder order, String run) {
            this.client = client;
            this.order = order;
            this.run = run;
        }

        int call(Interrupts interrupts) {
            BlockingQueue<FollowEvent> events = client.follow(run);
            interrupts.onInterrupt(() -> events.add(new FollowEvent.Detached()));
            while (exitCode == null) {
                try {
                    FollowEvent event =
                            stopping
                                    ? events.poll(END.toSeconds(), TimeUnit.SECONDS)
                                    : events.take();
                    if (event == null) {
                        fail("%s has not ended within %d s".formatted(run, END.toSeconds()));
                    } else {
                        on(event);
                    }
                } catch (InterruptedException e) {
                    if (stopping) {
                        Thread.currentThread().interrupt();
                        return ExitCode.INTERRUPTED;
                    }
                    stop(); // as Ctrl-C does, and the flag is cleared for its waits
                }
            }
            return exitCode;
        }

        private void on(FollowEvent event) {
            switch (event) {
                case FollowEvent.Began began -> {
                    began.run().banner().forEach(out::println);
                    out.flush();
                }
                case FollowEvent.Heard heard -> reader.read(heard.news());
                case FollowEvent.Contact(String line) -> warn(line);
                case FollowEvent.GivenUp(String line) -> fail(line);
                case FollowEvent.NotKept(String line) -> fail(line);
                case FollowEvent.NotThere(ClusterRuns.NotThere answer) ->
                        fail(FollowRun.notThere(answer));
                case FollowEvent.Detached _ -> stop();
            }
        }

        private void stop() {
            if (stopping) {
                return;
            }
            stopping = true;
            try {
                var _ = client.stop(run);
            } catch (ClusterException e) {
                fail("%s; penstock stop %s".formatted(e.getMessage(), run));
            }
        }

        private void fail(String line) {
            warn(line);
            exitCode = ExitCode.FAILURE;
        }

        private void warn(String line) {
            err.println("penstock: " + line);
            err.flush();
        }

        @Override
        public void onLine(String line) {
            out.println(line);
            out.flush();
        }

        @Override
        public void onEnded(RunOutcome outcome, String summary) {
            onLine(summary);
            exitCode =
                    outcome instanceof RunOutcome.Failed ? ExitCode.of(outcome, err) : ExitCode.OK;
        }

        @Override
        public void onOpened(List<String> devices, String fingerprint) {
            works = true;
            tell();
        }

        @Override
        public void onRecovering(int epoch, String cause) {
            works = false;
            told = "";
            onLine("interrupted, and texts under way have ended: " + cause);
        }

        @Override
        public void onRecovery(RecoveryReport report) {
            works = true;
            tell();
        }

        @Override
        public void onMembers(List<RunMember> members) {
            members.stream()
                    .filter(member -> member.rank().filter(rank -> rank == 0).isPresent())
                    .findFirst()
                    .ifPresent(first -> node = first.node());
            tell();
        }

        @Override
        public void onStall(String report) {
            warn(report);
        }

        /** Once for each place where it is, and after each interruption. */
        private void tell() {
            if (works && !node.isEmpty() && !node.equals(told)) {
                told = node;
                onLine(
                        "serving %s: http://%s:%d/ of node %s"
                                .formatted(
                                        order.name(),
                                        order.host().contains(":")
                                                ? "[" + order.host() + "]"
                                                : order.host(),
                                        order.port(),
                                        node));
            }
        }
    }
}
