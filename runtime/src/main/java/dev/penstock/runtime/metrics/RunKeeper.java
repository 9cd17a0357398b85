package dev.penstock.runtime.metrics;

/**
 * The process that trains in a run's directory now.
 *
 * @param pid in its host's own space of numbers
 * @param isHere whether that is this host's, as this process sees it: then the process is known to
 *     live; of another host it is known that it renewed its lease a moment ago
 */
public record RunKeeper(long pid, String host, boolean isHere) {
    /** Which process, for people. */
    public String told() {
        return isHere ? "process " + pid : "process %d on %s".formatted(pid, host);
    }
}
