package dev.penstock.runtime.chaos;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.RunNews;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.cluster.FollowEvent;
import dev.penstock.runtime.cluster.Submission;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.events.EventLogReader;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.runtime.launch.AuditTrail;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.report.FaultOutcome.Recovered;
import dev.penstock.runtime.report.RecoveryBook;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A training in a cluster of this machine whose nodes are struck from outside. It is watched
 * through what its seeds write, as any reader of its files would, and through what they tell those
 * who follow it: a seed whose disk is full writes nothing, and one that dies tells nothing.
 */
final class ClusterTraining {
    private static final Duration POLL = Duration.ofMillis(20);
    private static final String LOG = "cluster.log";
    private static final Duration ASK_AGAIN = Duration.ofMillis(200);
    private static final Duration START = Duration.ofSeconds(90);
    private static final Duration STANDSTILL = Duration.ofMinutes(3);

    /** For the last lines of a run that has ended. */
    private static final Duration FILES = Duration.ofSeconds(5);

    private record Struck(Strike strike, Instant at) {}

    private final ChaosCluster cluster;
    private final RunDirectory run;
    private final RunListener progress;
    private final Consumer<String> told;
    private final List<Strike> pending;
    private final List<Struck> struck = new ArrayList<>();
    private final List<RecoveryBook.Entry> recoveries = new ArrayList<>();
    private final LossBook losses = new LossBook();
    private final List<RunNews.Step> toldSteps = new ArrayList<>();
    private long step;
    private long lastSign = System.nanoTime();
    private @Nullable RunOutcome outcome;

    /** The same as {@link #outcome}, of which the files may say more, or nothing any more. */
    private @Nullable RunOutcome toldEnd;

    private ClusterTraining(
            ChaosCluster cluster,
            RunDirectory run,
            List<Strike> strikes,
            RunListener progress,
            Consumer<String> told) {
        this.cluster = cluster;
        this.run = run;
        this.progress = progress;
        this.told = told;
        this.pending = new ArrayList<>(strikes);
    }

    /**
     * Trains to the end.
     *
     * @param loaded with the faults of the run's own processes
     * @param strikes in the order of their steps
     * @param random as for {@link ChaosCluster}
     * @param folder of the cluster's files
     * @param told takes a line for each strike and each recovery, when it happens
     * @param onInterrupt as for {@link ChaosRun#run}
     */
    static HarmedTraining run(
            LoadedConfig loaded,
            List<Strike> strikes,
            Random random,
            Path folder,
            RunListener progress,
            Consumer<String> told,
            Consumer<Runnable> onInterrupt) {
        Path runs = folder.toAbsolutePath();
        RunDirectory run = RunDirectory.createUnder(runs, loaded.config().run().name());
        AuditTrail books = AuditTrail.of(run.path());
        books.begin();
        var interrupted = new AtomicBoolean();
        onInterrupt.accept(() -> interrupted.set(true));
        try (var log = new PrintWriter(runs.resolve(LOG).toFile(), StandardCharsets.UTF_8);
                ChaosCluster cluster = ChaosCluster.start(runs, log::println, random)) {
            var training = new ClusterTraining(cluster, run, strikes, progress, told);
            RunOutcome outcome;
            try (ClusterClient client =
                    ClusterClient.connect(cluster.seeds(), false, Optional.empty())) {
                outcome = training.toEnd(client.follow(submit(loaded, client)), interrupted);
            }
            training.addCommits();
            List<FaultRow> inner = HarmedTraining.faults(loaded, run, training.recoveries);
            return new HarmedTraining(
                    outcome,
                    training.losses,
                    books,
                    Stream.concat(inner.stream(), training.rows(inner)).toList());
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot write into %s: %s".formatted(runs, e.getMessage()), e);
        }
    }

    /**
     * Into the directory that was made for it, where the books are asked for.
     *
     * @return the run's name in the cluster
     */
    private static String submit(LoadedConfig loaded, ClusterClient client) {
        awaitWorkers(client);
        return switch (client.submit(Submission.of(loaded.config(), Optional.empty(), true))) {
            case ClusterRuns.Accepted(String name) -> name;
            case ClusterRuns.Refused(String reason) -> throw new BadInputException(reason);
        };
    }

    /** Whoever comes late would have nothing to do, and nothing to die of. */
    private static void awaitWorkers(ClusterClient client) {
        long deadline = System.nanoTime() + START.toNanos();
        while (client.list().nodes().size() < ChaosCluster.WORKERS.size()
                && System.nanoTime() < deadline) {
            LockSupport.parkNanos(ASK_AGAIN.toNanos());
        }
    }

    private RunOutcome toEnd(Queue<FollowEvent> news, AtomicBoolean interrupted)
            throws IOException {
        var events = new EventLogReader(run.events());
        while (true) {
            events.poll(this::take);
            for (FollowEvent event = news.poll(); event != null; event = news.poll()) {
                if (event instanceof FollowEvent.Heard(RunNews heard)) {
                    hear(heard);
                }
            }
            RunOutcome ended = outcome;
            if (ended != null) {
                return ended;
            }
            if (toldEnd != null && silence().compareTo(FILES) > 0) {
                return toldEnd;
            }
            if (interrupted.get()) {
                return new RunOutcome.Interrupted(step);
            }
            if (silence().compareTo(STANDSTILL) > 0) {
                return new RunOutcome.Failed(
                        step,
                        "nothing was heard of the run for %d s; see %s"
                                .formatted(silence().toSeconds(), run.path().resolveSibling(LOG)));
            }
            pending.removeIf(strike -> strike.step() <= step && strike(strike));
            LockSupport.parkNanos(POLL.toNanos());
        }
    }

    /** Returns whether there was anything to strike; otherwise it is tried again. */
    private boolean strike(Strike strike) {
        var at = Instant.now();
        Optional<String> what = cluster.strike(strike, run);
        what.ifPresent(
                struckThere -> {
                    struck.add(new Struck(strike, at));
                    told.accept("step %d: %s: %s".formatted(step, strike.describe(), struckThere));
                });
        return what.isPresent();
    }

    private void take(RunEvent event) {
        switch (event) {
            case RunEvent.Stepped stepped -> {
                reached(stepped.step());
                losses.add(stepped.step(), stepped.loss());
                progress.onStep(
                        new StepReport(
                                stepped.step(),
                                stepped.loss(),
                                stepped.gradientNorm(),
                                Double.NaN,
                                0,
                                TimeUnit.MICROSECONDS.toNanos(stepped.stepMicros()),
                                List.of()));
            }
            case RunEvent.Recovered recovered -> {
                lastSign = System.nanoTime();
                RecoveryBook.Entry entry = RecoveryBook.Entry.of(recovered);
                recoveries.add(entry);
                told.accept(recovered.told());
            }
            case RunEvent.Ended ended ->
                    outcome =
                            switch (ended.outcome()) {
                                case COMPLETED -> new RunOutcome.Completed(ended.step());
                                case INTERRUPTED -> new RunOutcome.Interrupted(ended.step());
                                case FAILED -> new RunOutcome.Failed(ended.step(), ended.reason());
                            };
            case RunEvent.Began _,
                    RunEvent.Opened _,
                    RunEvent.OpTimes _,
                    RunEvent.Evaluated _,
                    RunEvent.Saved _,
                    RunEvent.Verified _,
                    RunEvent.Members _,
                    RunEvent.Leases _,
                    RunEvent.Links _,
                    RunEvent.Noted _ -> {}
        }
    }

    private void hear(RunNews heard) {
        if (heard instanceof RunNews.Step told) {
            reached(told.step());
            toldSteps.add(told);
        } else if (heard instanceof RunNews.Ended ended) {
            toldEnd = ended.outcome();
            lastSign = System.nanoTime();
        }
    }

    private Duration silence() {
        return Duration.ofNanos(System.nanoTime() - lastSign);
    }

    private void reached(long committed) {
        step = committed;
        lastSign = System.nanoTime();
    }

    /**
     * Of steps, too, that a seed could not write, and those that it had committed when it was
     * killed, and could not tell any more.
     */
    private void addCommits() {
        toldSteps.forEach(told -> losses.addUnlessKnown(told.step(), told.loss()));
        for (JournalRecord written : JournalFile.read(run.path().resolve(JournalFile.NAME))) {
            if (written instanceof JournalRecord.Committed commit) {
                losses.addUnlessKnown(commit.step(), commit.loss());
            }
        }
    }

    private Stream<FaultRow> rows(List<FaultRow> others) {
        Stream<FaultRow> missed =
                pending.stream()
                        .map(
                                strike ->
                                        row(
                                                strike,
                                                "not reached",
                                                Optional.empty(),
                                                Optional.empty()));
        return Stream.concat(struck.stream().map(each -> row(each, others)), missed);
    }

    private FaultRow row(Struck done, List<FaultRow> others) {
        Optional<Recovered> recovery =
                recoveries.stream()
                        .filter(
                                entry ->
                                        latestBefore(entry.began(), others)
                                                .equals(Optional.of(done.at())))
                        .findFirst()
                        .map(entry -> Recovered.from(done.at(), entry));
        return row(
                done.strike(),
                recovery.isPresent() ? "recovered" : "survived",
                Optional.of(done.at()),
                recovery);
    }

    private static FaultRow row(
            Strike strike, String outcome, Optional<Instant> at, Optional<Recovered> recovery) {
        return new FaultRow(strike.describe(), outcome, at, recovery);
    }

    /** What happened last is taken for the cause of what follows. */
    private Optional<Instant> latestBefore(Instant recovery, List<FaultRow> others) {
        return Stream.concat(
                        struck.stream().map(Struck::at),
                        others.stream().flatMap(each -> each.fired().stream()))
                .filter(at -> !at.isAfter(recovery))
                .max(Comparator.naturalOrder());
    }
}
