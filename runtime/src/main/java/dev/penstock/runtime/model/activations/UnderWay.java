package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DeviceException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/** The copy to or from the host that was asked for last of a slot. */
final class UnderWay {
    private @Nullable CompletableFuture<Void> copy;

    void set(CompletableFuture<Void> newCopy) {
        copy = newCopy;
    }

    /**
     * Waits for the copy, if there is one.
     *
     * @return nanoseconds that it waited
     * @throws DeviceException if it failed
     */
    long await() {
        CompletableFuture<Void> now = copy;
        copy = null;
        if (now == null) {
            return 0;
        }
        long begun = System.nanoTime();
        try {
            now.join();
        } catch (CompletionException e) {
            throw new DeviceException(
                    "activations between device and host: expected a copy, got '%s'"
                            .formatted(e.getCause()),
                    e);
        }
        return System.nanoTime() - begun;
    }
}
