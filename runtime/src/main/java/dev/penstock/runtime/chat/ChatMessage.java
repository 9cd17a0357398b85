package dev.penstock.runtime.chat;

import java.util.List;

/**
 * What somebody says in a chat.
 *
 * @param role who: {@code system}, {@code user}, {@code assistant}, or another that a template
 *     knows
 */
public record ChatMessage(String role, String content) {
    /** The usual roles: those that the server takes, and every template that is known by name. */
    public static final List<String> ROLES =
            List.of("system", "developer", "user", "assistant", "tool", "function");

    static final String ASSISTANT = "assistant";

    /** Returns whether a model is to learn it. */
    public boolean isAnswer() {
        return role.equals(ASSISTANT);
    }
}
