package dev.penstock.actors.fault;

import java.io.IOException;

/**
 * Where whoever writes checkpoints asks whether something is to go wrong. Called by the writing
 * thread; a call may not return.
 */
public interface SaveFaults {
    /** Nothing ever goes wrong on purpose. */
    SaveFaults NONE = new SaveFaults() {};

    /** A point of a checkpoint's way to the disk is reached. */
    default void at(SavePoint point, long step) {}

    /**
     * Bytes of a shard are about to be written.
     *
     * @param written bytes of the file so far
     * @param count bytes that follow
     * @throws IOException in place of writing them
     */
    default void beforeWrite(long step, long written, long count) throws IOException {}
}
