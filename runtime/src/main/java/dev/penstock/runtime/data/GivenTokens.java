package dev.penstock.runtime.data;

/**
 * Tokens that the program gives which trains. Read from any thread; the same place has the same
 * token whenever it is read, so that a run that resumes or recovers reads what it read before.
 */
public interface GivenTokens {
    /** Where they come from, for problems with them. */
    String METHOD = "withTokens(source)";

    /** Returns the name by which a run that continues knows that they are the same. */
    String identity();

    /** Returns how many there are. */
    long size();

    /**
     * Copies tokens.
     *
     * @param first the place of the first
     * @param target receives them from {@code offset} on
     */
    void read(long first, int[] target, int offset, int count);
}
