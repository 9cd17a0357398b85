package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * The first words between a client and a seed: plain text, which every version understands, so that
 * a client of another version is told so instead of never being answered.
 */
public final class Greeting {
    /** Name of the actor on every seed, below {@code /user}. */
    public static final String ACTOR = "greeting";

    private static final String REPLY_TO = "reply-to";

    private Greeting() {}

    /** Answers greetings with who this is. */
    public static Behavior<String> create(Identity identity) {
        return Behaviors.setup(
                context ->
                        Behaviors.receive(String.class)
                                .onMessage(
                                        String.class,
                                        text -> {
                                            String path = parse(text).getOrDefault(REPLY_TO, "");
                                            if (!path.isBlank()) {
                                                ActorRefResolver.get(context.getSystem())
                                                        .<String>resolveActorRef(path)
                                                        .tell(print(identity.facts()));
                                            }
                                            return Behaviors.same();
                                        })
                                .build());
    }

    /**
     * What a client says.
     *
     * @param replyTo the path of the actor that is to be answered
     */
    public static String ask(Identity identity, String replyTo) {
        Map<String, String> facts = new LinkedHashMap<>(identity.facts());
        facts.put(REPLY_TO, replyTo);
        return print(facts);
    }

    /** Who answered. */
    public static Identity read(String answer) {
        return Identity.of(parse(answer));
    }

    private static String print(Map<String, String> facts) {
        return facts.entrySet().stream()
                .map(fact -> fact.getKey() + "=" + fact.getValue())
                .collect(Collectors.joining("\n"));
    }

    private static Map<String, String> parse(String text) {
        Map<String, String> facts = new LinkedHashMap<>();
        text.lines()
                .limit(20)
                .forEach(
                        line -> {
                            int equals = line.indexOf('=');
                            if (equals > 0) {
                                facts.put(line.substring(0, equals), line.substring(equals + 1));
                            }
                        });
        return facts;
    }
}
