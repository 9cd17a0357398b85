package dev.penstock.actors.spi;

import java.util.Optional;

/** Observes processes of this host from outside. Called by the supervisor; must return quickly. */
public interface ProcessVitals {
    /** Knows nothing of any process. */
    ProcessVitals NONE =
            new ProcessVitals() {
                @Override
                public Optional<VitalSigns> of(long pid, Optional<String> host) {
                    return Optional.empty();
                }

                @Override
                public Optional<VitalSigns> ofThisProcess() {
                    return Optional.empty();
                }
            };

    /**
     * Returns the signs of a process.
     *
     * @param host the host that it runs on; empty for this one
     * @return empty if it is gone, is on another host, or this system does not tell
     */
    Optional<VitalSigns> of(long pid, Optional<String> host);

    /** Returns the signs of the process that asks. */
    Optional<VitalSigns> ofThisProcess();
}
