package dev.penstock.cuda.memory;

/** Where the bytes of a scope come from. Called under the lock of the scope's tree. */
@FunctionalInterface
public interface MemorySource {
    /**
     * Takes zeroed memory, 64-byte aligned.
     *
     * @param scopePath the scope that asks, for messages
     * @param bytes more than 0
     * @throws RuntimeException if there is none left; the scope adds who wanted it and who has it
     */
    OwnedBuffer take(String name, String scopePath, long bytes);

    /**
     * Same as {@link #take}, with pinned host memory beside it where the device's is not the
     * host's.
     */
    default OwnedBuffer takeStaged(String name, String scopePath, long bytes) {
        return take(name, scopePath, bytes);
    }

    /** Whether {@link #takeStaged} takes other memory than {@link #take}. */
    default boolean stages() {
        return false;
    }
}
