package dev.penstock.runtime.config.reading;

/**
 * One thing that is wrong with a configuration, or with an option beside it.
 *
 * @param place the file, or the override or option as it was typed
 * @param line line in the file, 0 where there is none
 * @param key the key in question, empty if the file as a whole is
 * @param expected what would have been right; empty where {@code got} is a sentence of its own, as
 *     it is of files and the state of the system
 * @param got what was found
 * @param advice what to try, empty where what was found says it
 */
public record Problem(
        String place, int line, String key, String expected, String got, String advice) {

    /** A problem with an option of the command line, such as {@code --init}. */
    public static Problem atOption(String option, String expected, String got, String advice) {
        return new Problem(option, 0, "", expected, got, advice);
    }

    /**
     * One line: {@code quickstart.conf:12: model.width: expected E, got G; try A}, or {@code
     * quickstart.conf: no such file; try A}.
     */
    @Override
    public String toString() {
        return "%s%s: %s%s%s%s"
                .formatted(
                        place,
                        line > 0 ? ":" + line : "",
                        key.isEmpty() ? "" : key + ": ",
                        expected.isEmpty() ? "" : "expected " + expected + ", got ",
                        got,
                        advice.isEmpty() ? "" : "; " + advice);
    }
}
