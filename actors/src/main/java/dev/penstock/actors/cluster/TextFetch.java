package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import java.time.Duration;

/** Fetches the text of a {@link TextSource}, one piece after the other, and stops. */
public final class TextFetch extends AbstractBehavior<TextFetch.Command> {
    /** What a fetch understands; never leaves its process. */
    public sealed interface Command {}

    private record Arrived(TextSource.Piece piece) implements Command {}

    private record AskAgain() implements Command {}

    /** What came of it. */
    public sealed interface Result {}

    /** The whole text. */
    public record Fetched(String text) implements Result {}

    /** No text: the source fell silent, or has more than is taken. */
    public record Lost(String reason) implements Result {}

    private static final Duration PATIENCE = Duration.ofSeconds(2);
    private static final int TRIES = 5;

    private final ActorRef<TextSource.Command> source;
    private final int mostChars;
    private final ActorRef<Result> replyTo;
    private final ActorRef<TextSource.Piece> arrivals;
    private final StringBuilder text = new StringBuilder();
    private int wanted;
    private int tries;

    private TextFetch(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            ActorRef<TextSource.Command> source,
            int mostChars,
            ActorRef<Result> replyTo) {
        super(context);
        this.source = source;
        this.mostChars = mostChars;
        this.replyTo = replyTo;
        this.arrivals = context.messageAdapter(TextSource.Piece.class, Arrived::new);
        timers.startTimerWithFixedDelay(new AskAgain(), PATIENCE);
        ask();
    }

    /**
     * Fetches a text.
     *
     * @param mostChars a longer text is refused before it is taken
     * @param replyTo told once
     */
    public static Behavior<Command> of(
            ActorRef<TextSource.Command> source, int mostChars, ActorRef<Result> replyTo) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers ->
                                        new TextFetch(
                                                context, timers, source, mostChars, replyTo)));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder().onMessage(Command.class, this::onCommand).build();
    }

    private Behavior<Command> onCommand(Command command) {
        return switch (command) {
            case Arrived(TextSource.Piece piece) -> onPiece(piece);
            case AskAgain _ -> onAskAgain();
        };
    }

    private Behavior<Command> onPiece(TextSource.Piece piece) {
        if (piece.index() != wanted) {
            return this; // asked for twice
        }
        long least = (piece.pieces() - 1L) * (TextSource.PIECE_CHARS - 1);
        if (least > mostChars || text.length() + piece.text().length() > mostChars) {
            return end(new Lost("expected a text of at most %d characters".formatted(mostChars)));
        }
        text.append(piece.text());
        wanted++;
        tries = 0;
        if (wanted >= piece.pieces()) {
            return end(new Fetched(text.toString()));
        }
        ask();
        return this;
    }

    private Behavior<Command> onAskAgain() {
        if (++tries >= TRIES) {
            return end(
                    new Lost(
                            "piece %d of a text did not come within %d s"
                                    .formatted(wanted, PATIENCE.multipliedBy(TRIES).toSeconds())));
        }
        ask();
        return this;
    }

    private void ask() {
        source.tell(new TextSource.Get(wanted, arrivals));
    }

    private Behavior<Command> end(Result result) {
        replyTo.tell(result);
        return Behaviors.stopped();
    }
}
