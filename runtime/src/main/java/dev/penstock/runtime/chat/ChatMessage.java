package dev.penstock.runtime.chat;

/**
 * What somebody says in a chat.
 *
 * @param role who: {@code system}, {@code user}, {@code assistant}, or another that a template
 *     knows
 */
public record ChatMessage(String role, String content) {
    static final String ASSISTANT = "assistant";

    boolean isAnswer() {
        return role.equals(ASSISTANT);
    }
}
