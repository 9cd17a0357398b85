package dev.penstock.runtime.safetensors;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A hash taken on a thread of its own. The memory may be freed only once {@link #close} has
 * returned, whether or not the result was requested.
 */
final class BackgroundHash implements AutoCloseable {
    private final CompletableFuture<String> result;
    private final Thread thread;

    private BackgroundHash(CompletableFuture<String> result, Thread thread) {
        this.result = result;
        this.thread = thread;
    }

    static BackgroundHash start(String name, List<MemorySegment> parts) {
        CompletableFuture<String> result = new CompletableFuture<>();
        Thread thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("hash-" + name)
                        .start(() -> result.completeAsync(() -> hash(parts), Runnable::run));
        return new BackgroundHash(result, thread);
    }

    private static String hash(List<MemorySegment> parts) {
        Sha256 hash = new Sha256();
        parts.forEach(hash::update);
        return hash.hex();
    }

    /** Waits for the hash and returns it. */
    String join() {
        return result.join();
    }

    /** Stops the thread if it is still running and waits until it no longer uses the memory. */
    @Override
    public void close() {
        thread.interrupt();
        result.handle((hash, failure) -> hash).join();
    }
}
