package dev.penstock.runtime.chat;

import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * What a template does for one chat, and how much of it it may: templates come with the files of
 * strangers. Every limit is far above what writing a chat takes. Not thread-safe.
 */
final class TemplateWork {
    /** Blocks in blocks, or brackets in brackets. */
    static final int DEEPEST = 100;

    /** Words and signs of a tag. */
    static final int MOST_WORDS = 1_000;

    private static final long LEAST_STEPS = 1_000_000;
    private static final long STEPS_OF_A_MESSAGE = 10_000;
    private static final long LEAST_CHARACTERS = 1 << 20;
    private static final int TIMES_THE_CHAT = 4;

    /** Characters that are copied or compared in about the time of a step. */
    private static final int CHARACTERS_OF_A_STEP = 64;

    private final int messages;
    private final long mostSteps;
    private final long longest;
    private long steps;

    /**
     * @param messages of the chat
     * @param characters that they have together
     */
    TemplateWork(int messages, long characters) {
        this.messages = messages;
        mostSteps = LEAST_STEPS + STEPS_OF_A_MESSAGE * messages;
        longest = Math.min(LEAST_CHARACTERS + TIMES_THE_CHAT * characters, Integer.MAX_VALUE / 4);
    }

    /**
     * Counts a step.
     *
     * @throws TemplateException if there were too many
     */
    void step() {
        steps(1);
    }

    private void steps(long more) {
        steps += more;
        if (steps > mostSteps) {
            throw new TemplateException(
                    "expected at most %,d steps for a chat of %,d messages, got more"
                            .formatted(mostSteps, messages));
        }
    }

    /**
     * Counts a step with its result.
     *
     * @throws TemplateException if there were too many, or the result is too long
     */
    <T> T counted(T value) {
        steps(
                switch (value) {
                    case String text -> {
                        requireRoom(text.length());
                        yield 1 + text.length() / CHARACTERS_OF_A_STEP;
                    }
                    case Collection<?> list -> 1 + list.size();
                    case Map<?, ?> map -> 1 + map.size();
                    default -> 1;
                });
        return value;
    }

    /**
     * Checks a text before it is made.
     *
     * @throws TemplateException if it would be too long
     */
    void requireRoom(long characters) {
        if (characters > longest) {
            throw new TemplateException(
                    "expected a text of at most %,d characters for this chat, got a longer one"
                            .formatted(longest));
        }
    }

    /** {@link String#replace}, whose result may be far longer than what it is made of. */
    String replace(String text, String part, String other) {
        long places = 0;
        if (other.length() > part.length()) {
            int at = text.indexOf(part);
            while (at >= 0 && at <= text.length()) {
                places++;
                at = at == text.length() ? -1 : text.indexOf(part, at + Math.max(1, part.length()));
            }
        }
        requireRoom(text.length() + places * (other.length() - part.length()));
        return text.replace(part, other);
    }

    /** {@link String#join}, likewise. */
    String join(String between, List<String> texts) {
        long characters = (long) between.length() * texts.size();
        for (String text : texts) {
            characters += text.length();
        }
        requireRoom(characters);
        return String.join(between, texts);
    }

    /** Returns the two together. */
    String joined(String a, String b) {
        requireRoom((long) a.length() + b.length());
        return a + b;
    }
}
