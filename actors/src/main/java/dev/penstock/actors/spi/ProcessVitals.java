package dev.penstock.actors.spi;

import java.util.Optional;

/** Looks at processes of this host from outside. Called by the supervisor; must return quickly. */
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
     * Signs of a process.
     *
     * @param host that it runs on; empty: this one
     * @return empty if it is gone, is on another host, or this system does not say
     */
    Optional<VitalSigns> of(long pid, Optional<String> host);

    /** Signs of the process that asks. */
    Optional<VitalSigns> ofThisProcess();
}
