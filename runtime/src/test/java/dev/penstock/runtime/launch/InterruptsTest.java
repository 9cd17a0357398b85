package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class InterruptsTest {
    @Test
    void aSignalThatComesBeforeTheRunIsNotLost() {
        var interrupts = new Interrupts();
        var stops = new AtomicInteger();

        interrupts.onSignal();
        interrupts.onInterrupt(stops::incrementAndGet);

        assertThat(stops).hasValue(1);
    }

    @Test
    void aSignalDoesWhatWasSaidLast() {
        var interrupts = new Interrupts();
        var stops = new AtomicInteger();

        interrupts.onInterrupt(() -> stops.addAndGet(100));
        interrupts.onInterrupt(stops::incrementAndGet);
        interrupts.onSignal();

        assertThat(stops).hasValue(1);
    }
}
