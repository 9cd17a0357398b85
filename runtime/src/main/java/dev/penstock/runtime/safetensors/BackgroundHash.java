package dev.penstock.runtime.safetensors;

import java.io.InterruptedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * A hash taken on a thread of its own, of pieces handed over by one writer. It owns a few buffers:
 * the writer fills one, hands it over, and writes it to disk at the same time; a buffer is used
 * again when both are done with it. Memory that was handed over may be freed only once {@link
 * #close} has returned, whether or not the result was requested.
 */
final class BackgroundHash implements AutoCloseable {
    private static final int BUFFERS = 6;

    /**
     * A piece to hash.
     *
     * @param buffer released afterwards
     * @param isEnd whether it is none, and none follows
     */
    private record Piece(MemorySegment bytes, Optional<MemorySegment> buffer, boolean isEnd) {
        static final Piece END = new Piece(MemorySegment.NULL, Optional.empty(), true);
    }

    private final Arena arena = Arena.ofShared();
    private final int bufferBytes;
    private int made;

    /** Once per side that is done with a buffer: the writer, the hash. */
    private final BlockingQueue<MemorySegment> written = new ArrayBlockingQueue<>(BUFFERS);

    private final BlockingQueue<MemorySegment> hashed = new ArrayBlockingQueue<>(BUFFERS);
    private final BlockingQueue<Piece> pieces = new ArrayBlockingQueue<>(BUFFERS + 2);
    private final CompletableFuture<String> result = new CompletableFuture<>();
    private final Thread thread;

    private BackgroundHash(String name, int bufferBytes) {
        this.bufferBytes = bufferBytes;
        thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("hash-" + name)
                        .unstarted(() -> result.completeAsync(this::hash, Runnable::run));
    }

    /**
     * Starts without anything to hash.
     *
     * @param bufferBytes size of each buffer
     */
    static BackgroundHash start(String name, int bufferBytes) {
        BackgroundHash hash = new BackgroundHash(name, bufferBytes);
        hash.thread.start();
        return hash;
    }

    private String hash() {
        Sha256 hash = new Sha256();
        @Nullable Throwable failure = null;
        try {
            for (Piece piece = pieces.take(); !piece.isEnd(); piece = pieces.take()) {
                try {
                    hash.update(piece.bytes());
                } catch (RuntimeException | Error e) {
                    failure = e; // a mapped file that shrank: the writer must not wait for buffers
                }
                if (piece.buffer().isPresent()) {
                    hashed.put(piece.buffer().get());
                }
            }
        } catch (InterruptedException e) {
            return "interrupted"; // nobody asks for it
        }
        if (failure != null) {
            throw new CompletionException(failure);
        }
        return hash.hex();
    }

    /** Returns a buffer that is free, waiting for one if need be. */
    MemorySegment buffer() throws InterruptedIOException {
        if (made < BUFFERS) {
            made++;
            return arena.allocate(bufferBytes, Long.BYTES);
        }
        // both queues have the same order, so that their heads are the same buffer
        take(hashed);
        return take(written);
    }

    /** Adds memory that stays as it is until everything is written. */
    void update(MemorySegment bytes) throws InterruptedIOException {
        put(new Piece(bytes, Optional.empty(), false));
    }

    /** Adds memory that lies in a buffer, or goes with it. */
    void update(MemorySegment bytes, MemorySegment buffer) throws InterruptedIOException {
        put(new Piece(bytes, Optional.of(buffer), false));
    }

    private void put(Piece piece) throws InterruptedIOException {
        try {
            pieces.put(piece);
        } catch (InterruptedException e) {
            throw interrupted();
        }
    }

    /** Says that a buffer is written to disk. */
    void release(MemorySegment buffer) {
        written.add(buffer);
    }

    /**
     * Waits for the hash of everything and returns it. What was wrong with memory that was handed
     * over is thrown here.
     */
    String join() throws InterruptedIOException {
        put(Piece.END);
        try {
            return result.join();
        } catch (CompletionException e) {
            switch (e.getCause()) {
                case Error failure -> throw failure;
                case RuntimeException failure -> throw failure;
                case null, default -> throw e;
            }
        }
    }

    /** Stops the thread if it is still running and waits until it no longer uses the memory. */
    @Override
    public void close() {
        thread.interrupt();
        result.handle((hash, failure) -> hash).join();
        arena.close();
    }

    private static <T> T take(BlockingQueue<T> queue) throws InterruptedIOException {
        try {
            return queue.take();
        } catch (InterruptedException e) {
            throw interrupted();
        }
    }

    private static InterruptedIOException interrupted() {
        Thread.currentThread().interrupt();
        return new InterruptedIOException("interrupted");
    }
}
