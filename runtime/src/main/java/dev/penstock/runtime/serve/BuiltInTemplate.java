package dev.penstock.runtime.serve;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** Templates for models that come without one. */
public enum BuiltInTemplate implements ChatTemplate {
    /**
     * For models that know no conversations: a dialogue as one would write it down.
     *
     * <pre>
     *   Be brief.
     *
     *   User: Hello
     *   Assistant:
     * </pre>
     */
    PLAIN,

    /**
     * For models that were tuned with the marks of ChatML.
     *
     * <pre>
     *   &lt;|im_start|&gt;user
     *   Hello&lt;|im_end|&gt;
     *   &lt;|im_start|&gt;assistant
     * </pre>
     */
    CHATML;

    private static final String START = "<|im_start|>";
    private static final String END = "<|im_end|>";

    /** Returns the names of all. */
    public static List<String> names() {
        return Arrays.stream(values()).map(BuiltInTemplate::word).toList();
    }

    /**
     * Returns the one with this name.
     *
     * @throws IllegalArgumentException if there is none
     */
    public static BuiltInTemplate named(String name) {
        return Arrays.stream(values())
                .filter(template -> template.word().equals(name))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "no template '%s', expected one of %s"
                                                .formatted(name, names())));
    }

    private String word() {
        return name().toLowerCase(Locale.ROOT);
    }

    @Override
    public String render(List<ChatMessage> messages) {
        var text = new StringBuilder();
        for (ChatMessage message : messages) {
            text.append(this == CHATML ? marked(message) : line(message));
        }
        return text.append(this == CHATML ? START + "assistant\n" : "Assistant:").toString();
    }

    @Override
    public List<String> stops() {
        return this == CHATML ? List.of(END, START) : List.of("\nUser:");
    }

    private static String line(ChatMessage message) {
        return switch (message.role()) {
            case "system", "developer" -> message.content() + "\n\n";
            case "assistant" -> "Assistant: " + message.content() + "\n";
            default -> "User: " + message.content() + "\n";
        };
    }

    /** A message that ends itself could speak for others. */
    private static String marked(ChatMessage message) {
        for (String mark : List.of(END, START)) {
            if (message.content().contains(mark)) {
                throw new IllegalArgumentException(
                        "messages: expected none with %s, which ends one".formatted(mark));
            }
        }
        return START + message.role() + "\n" + message.content() + END + "\n";
    }
}
