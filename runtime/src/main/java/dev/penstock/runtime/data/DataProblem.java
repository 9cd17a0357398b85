package dev.penstock.runtime.data;

/**
 * One thing that keeps a run from reading its data.
 *
 * @param key the setting it is about, such as {@code data.source}
 * @param expected what would have been right
 * @param got what was found, naming the file
 * @param advice what to try
 */
public record DataProblem(String key, String expected, String got, String advice) {
    @Override
    public String toString() {
        return "%s: expected %s, got %s; %s".formatted(key, expected, got, advice);
    }
}
