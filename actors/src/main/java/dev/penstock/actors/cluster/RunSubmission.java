package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.DispatcherSelector;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Fetches a submission's text and has a run made of it; ends with its one answer. */
final class RunSubmission {
    /** What it understands; never leaves its process. */
    sealed interface Command {}

    /**
     * What came of it.
     *
     * @param run empty if there will be none
     * @param refusal why
     */
    record Made(Optional<ClusterRun> run, String refusal) implements Command {}

    private record TextCame(TextFetch.Result result) implements Command {}

    private static final Logger LOG = LoggerFactory.getLogger(RunSubmission.class);
    private static final int MOST_CHARS = 64 << 20;

    private RunSubmission() {}

    /** Makes a run of this text. */
    static Behavior<Command> create(
            Function<String, ClusterRun> maker,
            ActorRef<TextSource.Command> text,
            Consumer<Made> answer) {
        return Behaviors.setup(
                context -> {
                    context.spawn(
                            TextFetch.of(
                                    text,
                                    MOST_CHARS,
                                    context.messageAdapter(TextFetch.Result.class, TextCame::new)),
                            "text");
                    return Behaviors.receiveMessage(
                            command -> onCommand(context, command, maker, answer));
                });
    }

    private static Behavior<Command> onCommand(
            ActorContext<Command> context,
            Command command,
            Function<String, ClusterRun> maker,
            Consumer<Made> answer) {
        return switch (command) {
            case TextCame(TextFetch.Lost(String reason)) -> {
                answer.accept(new Made(Optional.empty(), reason));
                yield Behaviors.stopped();
            }
            case TextCame(TextFetch.Fetched(String text)) -> {
                Executor blocking =
                        context.getSystem().dispatchers().lookup(DispatcherSelector.blocking());
                context.pipeToSelf(
                        CompletableFuture.supplyAsync(() -> maker.apply(text), blocking),
                        RunSubmission::made);
                yield Behaviors.same();
            }
            case Made made -> {
                answer.accept(made);
                yield Behaviors.stopped();
            }
        };
    }

    private static Made made(@Nullable ClusterRun made, @Nullable Throwable error) {
        if (made != null) {
            return new Made(Optional.of(made), "");
        }
        Throwable cause = error == null || error.getCause() == null ? error : error.getCause();
        if (!(cause instanceof RunRefusedException)) {
            LOG.error("a submission could not be made a run", cause);
        }
        return new Made(
                Optional.empty(),
                cause == null || cause.getMessage() == null ? "" + cause : cause.getMessage());
    }
}
