package dev.penstock.actors.serialization;

import akka.actor.typed.ActorRef;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;

/** A protocol that uses every form there is. */
sealed interface SampleProtocol extends WireMessage {
    record Empty() implements SampleProtocol {}

    record Scalars(int a, long b, double c, float d, boolean e, String f, Duration g)
            implements SampleProtocol {}

    record Boxes(Integer a, Long b, Double c, Float d, Boolean e) implements SampleProtocol {}

    record Optionals(OptionalInt a, OptionalLong b, OptionalDouble c, Optional<Colour> d)
            implements SampleProtocol {}

    record Arrays(int[] a, long[] b, double[] c) implements SampleProtocol {}

    record Nested(Colour colour, List<Leaf> leaves, Tree tree, List<List<String>> texts)
            implements SampleProtocol {}

    record Question(String text, ActorRef<SampleProtocol> replyTo) implements SampleProtocol {}

    sealed interface Tree {}

    record Leaf(int value) implements Tree {
        public Leaf {
            if (value < 0) {
                throw new IllegalArgumentException("a leaf is not negative, got " + value);
            }
        }
    }

    record Branch(List<Tree> children) implements Tree {}

    enum Colour {
        RED,
        GREEN
    }
}
