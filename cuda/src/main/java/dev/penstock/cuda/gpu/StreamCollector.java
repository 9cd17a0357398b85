package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.DeviceException;

/**
 * Takes the work that a stream is to be given, and gives it when and how it sees fit, in order. Any
 * thread may flush; work is added by one thread at a time.
 */
interface StreamCollector extends AutoCloseable {
    /**
     * Asks for work, to be done after all that was asked for before.
     *
     * @param numbers the first {@code count} of these tell it; they are not kept
     */
    void add(StreamWork work, long[] numbers, int count);

    /**
     * Gives the stream all that was asked for.
     *
     * @throws DeviceException if the driver refuses it
     */
    void flush();

    /** Somebody waited, and all is well. */
    void finished();

    /** Names of what was given since somebody waited; a kernel that fails shows only then. */
    String unfinished();

    /** Never throws: with a lost GPU this ends too. What was not given is not done any more. */
    @Override
    void close();
}
