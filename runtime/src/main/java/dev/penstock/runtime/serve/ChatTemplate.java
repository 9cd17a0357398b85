package dev.penstock.runtime.serve;

import java.util.List;

/** Writes a conversation as the text that a model continues with its answer. Safe to share. */
public interface ChatTemplate {
    /**
     * Returns the text up to where the answer begins.
     *
     * @param messages at least one
     * @throws IllegalArgumentException if a message cannot be written; says why
     */
    String render(List<ChatMessage> messages);

    /** Returns the texts that end an answer, apart from the model's end-of-text token. */
    List<String> stops();
}
