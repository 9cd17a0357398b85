package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DeviceException;

import org.jspecify.annotations.Nullable;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** The copy to or from the host that was asked for last of a slot. */
final class UnderWay {
    private @Nullable CompletableFuture<Void> copy;

    void set(CompletableFuture<Void> newCopy) {
        copy = newCopy;
    }

    /**
     * Waits for the copy, if there is one.
     *
     * @throws DeviceException if it failed
     */
    void await() {
        CompletableFuture<Void> now = copy;
        copy = null;
        if (now != null) {
            try {
                now.join();
            } catch (CompletionException e) {
                throw new DeviceException(
                        "activations between device and host: expected a copy, got '%s'"
                                .formatted(e.getCause()),
                        e);
            }
        }
    }
}
