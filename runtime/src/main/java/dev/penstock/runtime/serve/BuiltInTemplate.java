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
    PLAIN(List.of("\nUser:")) {
        @Override
        public String render(List<ChatMessage> messages) {
            var text = new StringBuilder();
            for (ChatMessage message : messages) {
                switch (message.role()) {
                    case "system", "developer" -> text.append(message.content()).append("\n\n");
                    case "assistant" -> line(text, "Assistant", message);
                    default -> line(text, "User", message);
                }
            }
            return text.append("Assistant:").toString();
        }

        private static void line(StringBuilder text, String speaker, ChatMessage message) {
            text.append(speaker).append(": ").append(message.content()).append('\n');
        }
    },

    /**
     * For models that were tuned with the marks of ChatML.
     *
     * <pre>
     *   &lt;|im_start|&gt;user
     *   Hello&lt;|im_end|&gt;
     *   &lt;|im_start|&gt;assistant
     * </pre>
     */
    CHATML(List.of("<|im_end|>", "<|im_start|>")) {
        @Override
        public String render(List<ChatMessage> messages) {
            var text = new StringBuilder();
            for (ChatMessage message : messages) {
                requireNoMark(message);
                text.append("<|im_start|>")
                        .append(message.role())
                        .append('\n')
                        .append(message.content())
                        .append("<|im_end|>\n");
            }
            return text.append("<|im_start|>assistant\n").toString();
        }

        /** A message that ends itself could speak for others. */
        private void requireNoMark(ChatMessage message) {
            for (String mark : stops()) {
                if (message.content().contains(mark)) {
                    throw new IllegalArgumentException(
                            "expected messages without %s, which ends one".formatted(mark));
                }
            }
        }
    };

    private final List<String> stops;

    BuiltInTemplate(List<String> stops) {
        this.stops = stops;
    }

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
    public List<String> stops() {
        return stops;
    }
}
