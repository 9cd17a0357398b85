package dev.penstock.runtime.report;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Text for HTML and SVG. Whatever did not grow in this package goes through {@link #escape}. */
final class Markup {
    private Markup() {}

    /**
     * Text for elements and quoted attributes. Characters that XML does not allow become the
     * replacement character, so that an SVG stays well-formed.
     */
    static String escape(String text) {
        StringBuilder escaped = new StringBuilder(text.length() + 16);
        text.codePoints().forEach(character -> append(escaped, character));
        return escaped.toString();
    }

    /** A text file of this package. */
    static String resource(String name) {
        try (InputStream in = Markup.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException("expected the resource " + name + ", found none");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void append(StringBuilder escaped, int character) {
        switch (character) {
            case '&' -> escaped.append("&amp;");
            case '<' -> escaped.append("&lt;");
            case '>' -> escaped.append("&gt;");
            case '"' -> escaped.append("&quot;");
            case '\'' -> escaped.append("&#39;");
            default -> escaped.appendCodePoint(isXml(character) ? character : 0xFFFD);
        }
    }

    private static boolean isXml(int character) {
        return character == '\t'
                || character == '\n'
                || character == '\r'
                || (character >= 0x20 && character <= 0xD7FF)
                || (character >= 0xE000 && character <= 0xFFFD)
                || character >= 0x10000;
    }
}
