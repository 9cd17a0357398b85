package dev.penstock.runtime.report;

import java.time.Duration;
import java.util.Optional;

/**
 * How a run ended.
 *
 * @param ending {@code completed}, {@code interrupted at step 120}, {@code failed: ...}
 * @param wallTime from the start of this process's training to its end
 * @param sample text that the trained model wrote
 */
public record RunOutcome(String ending, Duration wallTime, Optional<String> sample) {
    public static RunOutcome completed(Duration wallTime, Optional<String> sample) {
        return new RunOutcome("completed", wallTime, sample);
    }
}
