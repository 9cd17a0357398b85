package dev.penstock;

/**
 * Tokens of one's own to train on, instead of files: a numbered row of them, of which each place
 * has the same token whenever it is read. A run reads windows of {@code model.context + 1} tokens
 * at places that follow from its seed, and the last part of the row is held out ({@code
 * data.validation-fraction}), as with text. Since a token depends on its place alone, a run that
 * resumes from a checkpoint, or repeats steps after a failure, has the bits of one that never
 * stopped.
 *
 * {@snippet file="dev/penstock/examples/OwnTokensExample.java" region="example"}
 *
 * <p>Read from several threads at once. Tokens are from 0 to {@code model.vocabulary} - 1; another
 * one ends the run. A source belongs to this process, so a run that uses one has all its ranks here
 * ({@code pipeline.processes = single}).
 */
public interface TokenSource {
    /**
     * Returns the name of these tokens, such as {@code "sensor log 2026-03, 8 bits"}. A run leaves
     * it in its directory, and resumes only with a source of the same name: change it whenever a
     * token changes.
     */
    String identity();

    /** Returns how many tokens there are, at least {@code model.context + 1}. */
    long size();

    /**
     * Copies tokens.
     *
     * @param first the place of the first one, from 0; {@code first + count} is at most {@link
     *     #size}
     * @param target receives them, from {@code offset} on
     */
    void read(long first, int[] target, int offset, int count);
}
