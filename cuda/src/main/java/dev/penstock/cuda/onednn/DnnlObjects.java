package dev.penstock.cuda.onednn;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayDeque;
import java.util.Deque;

/** Creates objects of the C interface and destroys them, last first, when closed. */
final class DnnlObjects implements AutoCloseable {
    private final Deque<Runnable> destroyers = new ArrayDeque<>();

    /** A creating call whose first argument is where the handle goes. */
    @FunctionalInterface
    interface Creation {
        int into(MemorySegment handle) throws Throwable;
    }

    /**
     * Creates an object.
     *
     * @param name of the C function, for errors
     * @param destroy of type {@code int (long)}
     * @return the object's handle
     */
    long create(String name, Creation creation, MethodHandle destroy) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment handle = arena.allocate(ValueLayout.JAVA_LONG);
            call(name, () -> creation.into(handle));
            long object = handle.get(ValueLayout.JAVA_LONG, 0);
            destroyers.push(
                    () ->
                            call(
                                    "destroying what " + name + " made",
                                    () -> (int) destroy.invokeExact(object)));
            return object;
        }
    }

    /** A call that returns a status. */
    @FunctionalInterface
    interface Call {
        int status() throws Throwable;
    }

    static void call(String name, Call call) {
        try {
            int status = call.status();
            if (status != 0) {
                throw OneDnn.failed(name, status);
            }
        } catch (Throwable e) {
            throw OneDnn.rethrown(e);
        }
    }

    @Override
    public void close() {
        while (!destroyers.isEmpty()) {
            destroyers.pop().run();
        }
    }
}
