package dev.penstock.cuda.gpu;

/**
 * Something that a stream can be given, told by numbers alone: given again with the same numbers it
 * does the same.
 */
interface StreamWork {
    /** For people: a kernel's, usually. */
    String name();

    /**
     * For people who measure: as {@link #name}, with what its time depends on where it is one name
     * for many.
     */
    default String describe(long[] numbers, int from) {
        return name();
    }

    /**
     * Gives it to the stream.
     *
     * @param numbers those that it was asked for with, from this index on
     */
    void give(long[] numbers, int from);
}
