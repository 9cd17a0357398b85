package dev.penstock.runtime.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.RunNews;
import dev.penstock.actors.cluster.TextFetch;
import dev.penstock.schedules.ir.ScheduleText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/**
 * Follows a run from outside its cluster: says every other second that it wants to, at the next
 * seed when one falls silent, and first of all fetches the run's program. Gives up when all have
 * been silent for as long as a seed on another machine may take to be there again, and when they
 * answer that none keeps the run for as long as one may take to open it, or its lock to be free.
 */
final class RunFollower extends AbstractBehavior<RunFollower.Command> {
    /** What it understands; never leaves its process. */
    sealed interface Command {}

    private record Answered(ClusterRuns.FollowAnswer answer) implements Command {}

    private record NewsCame(RunNews news) implements Command {}

    private record ProgramCame(TextFetch.Result result) implements Command {}

    private record Renew() implements Command {}

    private static final Duration RENEWAL = Duration.ofSeconds(2);
    private static final Duration SILENCE = Duration.ofSeconds(10);
    private static final Duration PATIENCE = Duration.ofMinutes(10);

    /** A lease on another host is void after 15 s, and a seed looks for it every 3 s. */
    private static final Duration HELD = Duration.ofMinutes(1);

    /** What passes sooner is not worth a line. */
    private static final Duration WORTH_A_LINE = Duration.ofSeconds(3);

    private static final int MOST_CHARS = 256 << 20;

    private final String run;
    private final List<ActorRef<ClusterRuns.Command>> desks;
    private final Queue<FollowEvent> events;
    private final Duration patience;
    private final ActorRef<ClusterRuns.FollowAnswer> answers;
    private final ActorRef<RunNews> news;
    private final List<RunNews> early = new ArrayList<>();
    private ClusterRuns.@Nullable Following following;
    private boolean began;
    private int desk;
    private boolean silent;
    private long heardNanos = System.nanoTime();
    private long turnedNanos = heardNanos;
    private final Duration heldPatience;

    /** Why no seed keeps the run, since when, and whether that was said. */
    private ClusterRuns.@Nullable WhyUnkept why;

    private long whyNanos;
    private boolean saidWhy;

    private RunFollower(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            String run,
            List<ActorRef<ClusterRuns.Command>> desks,
            Queue<FollowEvent> events,
            Duration patience,
            Duration heldPatience) {
        super(context);
        this.heldPatience = heldPatience;
        this.run = run;
        this.desks = desks;
        this.events = events;
        this.patience = patience;
        this.answers = context.messageAdapter(ClusterRuns.FollowAnswer.class, Answered::new);
        this.news = context.messageAdapter(RunNews.class, NewsCame::new);
        timers.startTimerWithFixedDelay(new Renew(), Duration.ZERO, RENEWAL);
    }

    static Behavior<Command> of(
            String run, List<ActorRef<ClusterRuns.Command>> desks, Queue<FollowEvent> events) {
        return of(run, desks, events, PATIENCE, HELD);
    }

    static Behavior<Command> of(
            String run,
            List<ActorRef<ClusterRuns.Command>> desks,
            Queue<FollowEvent> events,
            Duration patience,
            Duration heldPatience) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers ->
                                        new RunFollower(
                                                context,
                                                timers,
                                                run,
                                                desks,
                                                events,
                                                patience,
                                                heldPatience)));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder().onMessage(Command.class, this::onCommand).build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case Answered(ClusterRuns.FollowAnswer answer) -> {
                return onAnswer(answer);
            }
            case NewsCame(RunNews item) -> onNews(item);
            case ProgramCame(TextFetch.Result result) -> onProgram(result);
            case Renew _ -> {
                return onRenew();
            }
        }
        return this;
    }

    private Behavior<Command> onAnswer(ClusterRuns.FollowAnswer answer) {
        heardNanos = System.nanoTime();
        if (silent) {
            silent = false;
            events.add(new FollowEvent.Contact("the cluster answers again"));
        }
        switch (answer) {
            case ClusterRuns.NotThere notThere -> events.add(new FollowEvent.NotThere(notThere));
            case ClusterRuns.Unkept unkept -> {
                return onUnkept(unkept);
            }
            case ClusterRuns.Following known -> {
                why = null;
                if (following == null) {
                    following = known;
                    getContext()
                            .spawnAnonymous(
                                    TextFetch.of(
                                            known.schedule(),
                                            MOST_CHARS,
                                            getContext()
                                                    .messageAdapter(
                                                            TextFetch.Result.class,
                                                            ProgramCame::new)));
                }
            }
        }
        return this;
    }

    private Behavior<Command> onUnkept(ClusterRuns.Unkept unkept) {
        long now = System.nanoTime();
        if (why != unkept.why()) {
            why = unkept.why();
            whyNanos = now;
            saidWhy = false;
        }
        Duration waited = Duration.ofNanos(now - whyNanos);
        Duration limit =
                switch (unkept.why()) {
                    case LOOKS, OPENS -> patience;
                    case HELD -> heldPatience;
                    case BROKEN -> Duration.ZERO;
                };
        if (waited.compareTo(limit) >= 0) {
            events.add(new FollowEvent.NotKept(unkept.line()));
            return Behaviors.stopped();
        }
        if (!saidWhy && waited.compareTo(WORTH_A_LINE) >= 0) {
            saidWhy = true;
            events.add(
                    new FollowEvent.Contact(
                            "%s; still waiting, for up to %d s"
                                    .formatted(unkept.line(), limit.toSeconds())));
        }
        return this;
    }

    private void onProgram(TextFetch.Result result) {
        ClusterRuns.Following known = following;
        if (began || known == null) {
            return;
        }
        switch (result) {
            case TextFetch.Lost _ -> following = null; // the next answer begins anew
            case TextFetch.Fetched(String text) -> {
                began = true;
                events.add(new FollowEvent.Began(known, ScheduleText.parse(text)));
                early.forEach(item -> events.add(new FollowEvent.Heard(item)));
                early.clear();
            }
        }
    }

    private void onNews(RunNews item) {
        heardNanos = System.nanoTime();
        if (began) {
            events.add(new FollowEvent.Heard(item));
        } else {
            early.add(item);
        }
    }

    private Behavior<Command> onRenew() {
        long now = System.nanoTime();
        if (now - heardNanos > patience.toNanos()) {
            events.add(
                    new FollowEvent.GivenUp(
                            "no seed has answered for %d s".formatted(patience.toSeconds())));
            return Behaviors.stopped();
        }
        if (now - Math.max(heardNanos, turnedNanos) > SILENCE.toNanos()) {
            turnedNanos = now;
            desk = (desk + 1) % desks.size();
            if (!silent) {
                silent = true;
                events.add(
                        new FollowEvent.Contact(
                                "the cluster has been silent for %d s: still trying, for up to %d s"
                                        .formatted(SILENCE.toSeconds(), patience.toSeconds())));
            }
        }
        desks.get(desk).tell(new ClusterRuns.Follow(run, news, answers));
        return this;
    }
}
