package dev.penstock.runtime.data;

import java.io.Closeable;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** The stretches of one file. Read by one thread. */
interface FileStretches extends Closeable {
    /** Returns the next stretch; null at the end of the file. */
    @Nullable Stretch next() throws IOException;
}
