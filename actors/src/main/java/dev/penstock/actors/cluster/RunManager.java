package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.PostStop;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.schedules.ir.ScheduleText;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run of a cluster: has it supervised, tells those who follow it, and writes its report. What
 * becomes of it is decided by the {@link ClusterCoordinator}. Stays when the run has ended, for
 * those who ask later.
 */
final class RunManager extends AbstractBehavior<RunManager.Command> {
    /** What it understands; never leaves its process. */
    sealed interface Command {}

    /** See {@link ClusterRuns.Follow}. */
    record Followed(ClusterRuns.Follow follow) implements Command {}

    /** See {@link ClusterEffect.Supervise}. */
    record Supervise() implements Command {}

    /** See {@link ClusterEffect.TellSupervisor}. */
    record TellSupervisor(PipelineSupervisor.Command command) implements Command {}

    /** See {@link ClusterEffect.TellPeople}. */
    record TellPeople(String line) implements Command {}

    /** See {@link ClusterEffect.End}. */
    record End(RunOutcome outcome, Duration took) implements Command {}

    private record NewsCame(RunNews news) implements Command {}

    private record SupervisorGone() implements Command {}

    private record Finished(RunOutcome outcome, String summary) implements Command {}

    private record Tick() implements Command {}

    /** What it and its supervisor say to whoever keeps the cluster's runs. */
    sealed interface Said {}

    /** A step was committed. */
    record Committed(long step) implements Said {}

    /** The supervisor recovers the run. */
    record Recovering(int epoch, String cause) implements Said {}

    /** All ranks are back. */
    record Recovered(long fromStep) implements Said {}

    /** The supervisor has ended. */
    record Ended(RunOutcome outcome) implements Said {}

    /** The supervisor wants a rank started. */
    record StartRank(int rank) implements Said {}

    /** Where the supervisor has a rank hosted. */
    record RankPlaced(int rank, String process) implements Said {}

    /** Whether these processes have room for ranks whose mirrors they hold. */
    record TakeIn(Map<Integer, String> processes, CompletableFuture<Boolean> answer)
            implements Said {}

    /**
     * The supervisor wants drivers where there are none.
     *
     * @param gone directories of drivers that are gone, as far as it knows
     */
    record RestartLink(Set<String> gone) implements Said {}

    private static final Logger LOG = LoggerFactory.getLogger(RunManager.class);
    private static final Duration TICK = Duration.ofSeconds(1);

    private final ClusterRun made;
    private final Consumer<Said> cluster;
    private final Followers followers = new Followers();
    private final ActorRef<TextSource.Command> schedule;
    private final CompletableFuture<RunOutcome> outcome = new CompletableFuture<>();
    private @Nullable ActorRef<PipelineSupervisor.Command> supervisor;
    private long step;
    private boolean ended;

    /** Until when a supervisor that cannot begin is waited for; empty if none is. */
    private OptionalLong waitsUntil = OptionalLong.empty();

    private boolean saidThatItWaits;

    /** What it is to be told when it has begun. */
    private final List<PipelineSupervisor.Command> untold = new ArrayList<>();

    private RunManager(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            ClusterRun made,
            Consumer<Said> cluster) {
        super(context);
        this.made = made;
        this.cluster = cluster;
        this.step = made.completed();
        this.schedule =
                context.spawn(
                        TextSource.of(ScheduleText.print(made.plan().training())), "schedule");
        timers.startTimerWithFixedDelay(new Tick(), TICK);
    }

    /**
     * A run that nobody supervises yet.
     *
     * @param cluster told what happens, from any thread
     */
    static Behavior<Command> create(ClusterRun made, Consumer<Said> cluster) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> new RunManager(context, timers, made, cluster)));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder()
                .onMessage(Command.class, this::onCommand)
                .onSignal(PostStop.class, _ -> onPostStop())
                .build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case Followed(ClusterRuns.Follow follow) -> onFollowed(follow);
            case Supervise _ -> onSupervise();
            case TellSupervisor(PipelineSupervisor.Command order) -> onTellSupervisor(order);
            case TellPeople(String line) -> followers.tell(new RunNews.Told(line));
            case NewsCame(RunNews news) -> onNews(news);
            case SupervisorGone _ -> onSupervisorGone();
            case End end -> onEnd(end);
            case Finished(RunOutcome how, String summary) ->
                    followers.tell(new RunNews.Ended(how, summary));
            case Tick _ -> onTick();
        }
        return this;
    }

    // ---- its supervisor ---------------------------------------------------------------------

    private void onSupervise() {
        getContext().pipeToSelf(outcome, (_, _) -> new SupervisorGone());
        waitsUntil =
                OptionalLong.of(
                        System.nanoTime() + ClusterRun.patience(made.plan().timeouts()).toNanos());
        begin();
    }

    /** A run that another seed kept has ranks that wait: a disk that is full may empty again. */
    private void begin() {
        try {
            SupervisorServices services = made.services(new KeeperSupply(cluster));
            ActorRef<Command> self = getContext().getSelf();
            RunListener listener =
                    made.listener(new NewsWriter(news -> self.tell(new NewsCame(news))));
            ActorRef<PipelineSupervisor.Command> begun =
                    getContext()
                            .spawn(
                                    PipelineSupervisor.create(
                                            made.plan(),
                                            listener,
                                            services,
                                            made.beginning(),
                                            outcome),
                                    "supervisor");
            supervisor = begun;
            waitsUntil = OptionalLong.empty();
            getContext().watchWith(begun, new SupervisorGone());
            untold.forEach(begun::tell);
            untold.clear();
        } catch (UncheckedIOException e) {
            boolean takenUp = made.beginning() instanceof RunBeginning.TakenUp;
            if (!takenUp || System.nanoTime() > waitsUntil.orElseThrow()) {
                cannotBegin(e);
            } else if (!saidThatItWaits) {
                saidThatItWaits = true;
                LOG.warn("run {} cannot be supervised yet, which is tried again", made.name(), e);
                followers.tell(new RunNews.Told("cannot begin yet: " + e.getMessage()));
            }
        } catch (RuntimeException e) {
            cannotBegin(e);
        }
    }

    private void cannotBegin(RuntimeException why) {
        waitsUntil = OptionalLong.empty();
        LOG.warn("run {} cannot be supervised", made.name(), why);
        outcome.complete(new RunOutcome.Failed(step, "cannot begin: " + why.getMessage()));
    }

    private void onTellSupervisor(PipelineSupervisor.Command order) {
        if (supervisor != null) {
            supervisor.tell(order);
        } else if (waitsUntil.isPresent() && order instanceof PipelineSupervisor.Interrupt) {
            waitsUntil = OptionalLong.empty();
            outcome.complete(new RunOutcome.Interrupted(step));
        } else if (waitsUntil.isPresent()) {
            untold.add(order);
        }
    }

    private void onTick() {
        followers.sweep();
        if (waitsUntil.isPresent()) {
            begin();
        }
    }

    /** One that said how the run ended, or one that died without a word. */
    private void onSupervisorGone() {
        outcome.complete(
                new RunOutcome.Failed(step, "its supervisor died, which is a bug of Penstock"));
        cluster.accept(new Ended(outcome.join()));
    }

    private void onNews(RunNews news) {
        followers.tell(news);
        if (news instanceof RunNews.Step committed) {
            step = committed.step();
            cluster.accept(new Committed(step));
        } else if (news instanceof RunNews.Overflowed(Overflow skipped)) {
            step = skipped.step();
            cluster.accept(new Committed(step));
        } else if (news instanceof RunNews.Recovering(int epoch, String cause)) {
            cluster.accept(new Recovering(epoch, cause));
        } else if (news instanceof RunNews.Recovery(RecoveryReport report)) {
            step = report.fromStep();
            cluster.accept(new Recovered(step));
        }
    }

    // ---- those who follow it ----------------------------------------------------------------

    private void onFollowed(ClusterRuns.Follow follow) {
        follow.replyTo()
                .tell(
                        new ClusterRuns.Following(
                                made.name(),
                                made.banner(),
                                made.plan().steps().completed(),
                                made.plan().steps().last(),
                                made.tokens(),
                                made.plan().programGrid(),
                                schedule));
        followers.follow(follow.news());
    }

    // ---- the end ----------------------------------------------------------------------------

    private void onEnd(End end) {
        ended = true;
        supervisor = null;
        waitsUntil = OptionalLong.empty();
        Executor blocking =
                getContext().getSystem().dispatchers().lookup(DispatcherSelector.blocking());
        getContext()
                .pipeToSelf(
                        CompletableFuture.supplyAsync(() -> finish(end), blocking),
                        (summary, error) ->
                                new Finished(
                                        end.outcome(),
                                        Objects.requireNonNullElse(
                                                summary, "no report: " + error)));
    }

    private String finish(End end) {
        try (made) {
            return made.finish(end.outcome(), end.took());
        }
    }

    private Behavior<Command> onPostStop() {
        if (!ended) {
            made.close();
        }
        return this;
    }
}
