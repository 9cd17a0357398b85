package dev.penstock.runtime.dashboard;

import java.util.List;
import java.util.Map;

/**
 * How a run stands; small, and sent with every update. Times in milliseconds since 1970.
 *
 * @param state running, completed, interrupted or failed
 * @param told a sentence to it, or nothing
 * @param recovering whether something died and the run is not back yet
 * @param health {@code good}, or what is not
 * @param etaSeconds until the last step at the pace of the last ones; NaN where unknown
 * @param lastSign when the log last grew
 * @param rankMicros of the last step, per activity one entry per rank
 * @param peakBytes device memory, per rank
 * @param samples steps whose op times are known, rising
 */
record RunHead(
        String name,
        String directory,
        String state,
        String told,
        boolean recovering,
        String health,
        long step,
        long lastStep,
        double loss,
        double tokensPerSecond,
        double etaSeconds,
        long beganAt,
        long lastSign,
        Map<String, List<Long>> rankMicros,
        List<Long> peakBytes,
        List<Long> samples) {}
