package dev.penstock.runtime.inference;

/** Notified of tokens as they are chosen, on the last stage's thread: must return quickly. */
@FunctionalInterface
public interface TokenListener {
    /**
     * A token was chosen.
     *
     * @param text number of its prompt
     * @return false to end the text with it
     */
    boolean onToken(int text, int token);

    /** No token of this text follows; not called for texts that are stopped from outside. */
    default void onEnd(int text) {}
}
