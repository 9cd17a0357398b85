package dev.penstock.runtime.data;

import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.data.rows.Masking;
import java.util.Optional;

/**
 * What a run wants to know of its tokens besides their numbers.
 *
 * @param documents whether documents that share a row are trained on each for itself
 * @param answers whether the loss counts only what is marked: a chat's answers, or the targets of a
 *     file of tokens that are not -100
 * @param template writes chats as text; there where the format is one of chats
 * @param masking hides words, which alone are targets; empty where the next token is
 */
public record Marking(
        boolean documents,
        boolean answers,
        Optional<ChatTemplate> template,
        Optional<Masking> masking) {
    /** Nothing. */
    public static final Marking NONE = new Marking(false, false, Optional.empty());

    /** Of tokens none of which are hidden. */
    public Marking(boolean documents, boolean answers, Optional<ChatTemplate> template) {
        this(documents, answers, template, Optional.empty());
    }

    /** Returns whether it is anything. */
    boolean any() {
        return documents || answers;
    }
}
