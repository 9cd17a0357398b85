package dev.penstock.runtime.torchfile;

import java.lang.foreign.MemorySegment;

/** Where the table of contents and the elements of a file lie. */
interface Container {
    /** Returns the table of contents: a pickle, perhaps with something behind it. */
    MemorySegment table();

    /**
     * Returns the elements of a storage.
     *
     * @param key as the table names it
     */
    MemorySegment storage(String key) throws MalformedException;
}
