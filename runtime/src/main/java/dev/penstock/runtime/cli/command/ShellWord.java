package dev.penstock.runtime.cli.command;

import java.util.regex.Pattern;

/** A word of a command that people copy into a shell. */
public final class ShellWord {
    private static final Pattern PLAIN = Pattern.compile("[\\p{L}\\p{N}_@%+=:,./-]+");

    private ShellWord() {}

    /** Returns the word, in quotes where a shell would take it for something else. */
    public static String quoted(String word) {
        return PLAIN.matcher(word).matches() ? word : "'" + word.replace("'", "'\\''") + "'";
    }
}
