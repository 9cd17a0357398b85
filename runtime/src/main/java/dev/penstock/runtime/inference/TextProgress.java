package dev.penstock.runtime.inference;

/**
 * Notified of a text's tokens as they are chosen, on threads of the pipeline or of whoever ends the
 * text, one at a time: must return quickly and submit or cancel nothing.
 */
public interface TextProgress {
    /** A token was chosen. */
    void onToken(int token);

    /** A token was chosen, of a text whose request asks for log-probabilities. */
    default void onToken(LogProbabilities chances) {
        onToken(chances.token());
    }

    /** No token follows; called once. */
    void onEnd(Continuation.End end);
}
