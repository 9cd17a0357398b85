package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import dev.penstock.actors.serialization.WireMessage;
import java.util.ArrayList;
import java.util.List;

/** Hands out a text piece by piece: a message must stay well below Artery's frame of 256 KiB. */
public final class TextSource {
    /** What a source understands. */
    public sealed interface Command extends WireMessage {}

    /** Asks for a piece, counted from 0. One out of range is not answered. */
    public record Get(int piece, ActorRef<Piece> replyTo) implements Command {}

    /** A piece of the text. */
    public record Piece(int index, int pieces, String text) implements WireMessage {}

    /** At most three bytes each in UTF-8. */
    static final int PIECE_CHARS = 32 * 1024;

    private TextSource() {}

    /** Hands out a text until stopped. */
    public static Behavior<Command> of(String text) {
        List<String> pieces = pieces(text);
        return Behaviors.receive(Command.class)
                .onMessage(
                        Get.class,
                        get -> {
                            if (get.piece() >= 0 && get.piece() < pieces.size()) {
                                String piece = pieces.get(get.piece());
                                get.replyTo().tell(new Piece(get.piece(), pieces.size(), piece));
                            }
                            return Behaviors.same();
                        })
                .build();
    }

    /** At least one; no character of two halves is cut. */
    static List<String> pieces(String text) {
        List<String> pieces = new ArrayList<>();
        int begin = 0;
        do {
            int end = Math.min(text.length(), begin + PIECE_CHARS);
            if (end < text.length() && Character.isHighSurrogate(text.charAt(end - 1))) {
                end--;
            }
            pieces.add(text.substring(begin, end));
            begin = end;
        } while (begin < text.length());
        return pieces;
    }
}
