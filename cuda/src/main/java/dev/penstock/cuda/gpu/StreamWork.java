package dev.penstock.cuda.gpu;

/**
 * Something that a stream can be given, told by numbers alone: given again with the same numbers it
 * does the same.
 */
interface StreamWork {
    /** For people: a kernel's, usually. */
    String name();

    /**
     * Gives it to the stream.
     *
     * @param numbers those that it was asked for with, from this index on
     */
    void give(long[] numbers, int from);
}
