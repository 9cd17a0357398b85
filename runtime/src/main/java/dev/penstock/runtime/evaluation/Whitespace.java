package dev.penstock.runtime.evaluation;

import java.util.regex.Pattern;

/** White space as Python has it, in which both protocols are written. */
final class Whitespace {
    /** One character of it, as part of a regular expression. */
    static final String CHARACTER =
            "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";

    private static final Pattern RUN = Pattern.compile(CHARACTER + "+");

    private Whitespace() {}

    /** Returns how many parts {@code re.split(r"\s+", text)} has, empty ones included. */
    static long parts(String text) {
        return 1 + RUN.matcher(text).results().count();
    }

    /** Returns {@code text.rstrip()}. */
    static String stripEnd(String text) {
        int end = text.length();
        while (end > 0 && isSpace(text.charAt(end - 1))) {
            end--;
        }
        return text.substring(0, end);
    }

    /** Returns {@code text.strip()}. */
    static String strip(String text) {
        int start = 0;
        while (start < text.length() && isSpace(text.charAt(start))) {
            start++;
        }
        return stripEnd(text.substring(start));
    }

    /** Returns {@code text.split()[-1]}; empty where that has nothing. */
    static String lastWord(String text) {
        String stripped = stripEnd(text);
        int start = stripped.length();
        while (start > 0 && !isSpace(stripped.charAt(start - 1))) {
            start--;
        }
        return stripped.substring(start);
    }

    /** All of them are of the basic plane. */
    private static boolean isSpace(char c) {
        return (c >= '\t' && c <= '\r')
                || (c >= 0x1c && c <= ' ')
                || c == 0x85
                || c == 0xa0
                || c == 0x1680
                || (c >= 0x2000 && c <= 0x200a)
                || c == 0x2028
                || c == 0x2029
                || c == 0x202f
                || c == 0x205f
                || c == 0x3000;
    }
}
