package dev.penstock.runtime.chat;

import java.util.ArrayList;
import java.util.List;

/**
 * Cuts a template into text and tags, and removes the blanks that go with tags: those that a minus
 * asks for, and, as chat templates expect, blanks before a block at the start of its line and the
 * newline after it ({@code lstrip_blocks} and {@code trim_blocks}).
 */
final class TemplatePieces {
    private static final String WORD_SIGNS = "_";
    private static final List<String> LONG_SIGNS = List.of("==", "!=", "<=", ">=", "//", "**");

    private final String source;
    private final List<Piece> pieces = new ArrayList<>();
    private int at;

    /** Whether the text that follows is at the start of a line. */
    private boolean atLineStart = true;

    private TemplatePieces(String source) {
        this.source = source;
    }

    /** Text, or a tag. */
    sealed interface Piece {
        /** Text that is written as it is. */
        record Text(String text) implements Piece {}

        /** Something between braces whose text is written. */
        record Output(List<Token> tokens) implements Piece {}

        /** A statement. */
        record Block(List<Token> tokens) implements Piece {}
    }

    /** What a word of a tag is. */
    enum Kind {
        NAME,
        NUMBER,
        TEXT,
        SIGN
    }

    /** A word of a tag. */
    record Token(Kind kind, String text) {
        boolean is(String sign) {
            return kind != Kind.TEXT && text.equals(sign);
        }
    }

    static List<Piece> of(String source) {
        String lines = source.replace("\r\n", "\n");
        var pieces =
                new TemplatePieces(
                        lines.endsWith("\n") ? lines.substring(0, lines.length() - 1) : lines);
        pieces.read();
        return pieces.pieces;
    }

    private void read() {
        boolean stripped = false;
        while (at < source.length()) {
            int tag = nextTag();
            String text = source.substring(at, tag);
            if (stripped) {
                String rest = text.stripLeading();
                atLineStart = text.length() > rest.length() ? endsLine(text, rest) : atLineStart;
                text = rest;
            }
            if (tag == source.length()) {
                addText(text);
                return;
            }
            char kind = source.charAt(tag + 1);
            at = tag + 2;
            if (source.startsWith("-", at)) {
                text = text.stripTrailing();
                at++;
            } else if (source.startsWith("+", at)) {
                at++;
            } else if (kind != '{') {
                text = withoutIndent(text);
            }
            addText(text);
            stripped = tag(kind);
        }
    }

    private static boolean endsLine(String text, String rest) {
        return text.charAt(text.length() - rest.length() - 1) == '\n';
    }

    private int nextTag() {
        for (int i = at; i + 1 < source.length(); i++) {
            if (source.charAt(i) == '{' && "{%#".indexOf(source.charAt(i + 1)) >= 0) {
                return i;
            }
        }
        return source.length();
    }

    private String withoutIndent(String text) {
        int line = text.lastIndexOf('\n') + 1;
        boolean blank = text.substring(line).isBlank();
        return blank && (line > 0 || atLineStart) ? text.substring(0, line) : text;
    }

    private void addText(String text) {
        if (!text.isEmpty()) {
            pieces.add(new Piece.Text(text));
        }
    }

    /** Reads a tag to its end; returns whether it strips the text after it. */
    private boolean tag(char kind) {
        String end = kind == '{' ? "}}" : kind + "}";
        List<Token> tokens = new ArrayList<>();
        if (kind == '#') {
            int close = source.indexOf(end, at);
            if (close < 0) {
                throw new TemplateException("a comment without an end");
            }
            boolean minus = close > at && source.charAt(close - 1) == '-';
            at = close;
            return end(kind, end, minus);
        }
        while (true) {
            while (at < source.length() && Character.isWhitespace(source.charAt(at))) {
                at++;
            }
            if (at >= source.length()) {
                throw new TemplateException("a tag without its end " + end);
            }
            boolean minus = source.startsWith("-" + end, at);
            if (minus || source.startsWith(end, at)) {
                at += minus ? 1 : 0;
                pieces.add(kind == '{' ? new Piece.Output(tokens) : new Piece.Block(tokens));
                return end(kind, end, minus);
            }
            tokens.add(token());
        }
    }

    private boolean end(char kind, String end, boolean minus) {
        at += end.length();
        atLineStart = false;
        if (!minus && kind != '{' && source.startsWith("\n", at)) {
            at++;
            atLineStart = true;
        }
        return minus;
    }

    private Token token() {
        int start = at;
        char c = source.charAt(at);
        if (c == '\'' || c == '"') {
            return new Token(Kind.TEXT, text(c));
        }
        if (Character.isLetter(c) || WORD_SIGNS.indexOf(c) >= 0) {
            while (at < source.length() && isOfWord(source.charAt(at))) {
                at++;
            }
            return new Token(Kind.NAME, source.substring(start, at));
        }
        if (Character.isDigit(c)) {
            while (at < source.length() && Character.isDigit(source.charAt(at))) {
                at++;
            }
            return new Token(Kind.NUMBER, source.substring(start, at));
        }
        for (String sign : LONG_SIGNS) {
            if (source.startsWith(sign, at)) {
                at += sign.length();
                return new Token(Kind.SIGN, sign);
            }
        }
        at++;
        return new Token(Kind.SIGN, String.valueOf(c));
    }

    private static boolean isOfWord(char c) {
        return Character.isLetterOrDigit(c) || WORD_SIGNS.indexOf(c) >= 0;
    }

    private String text(char quote) {
        StringBuilder text = new StringBuilder();
        at++;
        while (at < source.length() && source.charAt(at) != quote) {
            char c = source.charAt(at++);
            if (c == '\\' && at < source.length()) {
                char escaped = source.charAt(at++);
                switch (escaped) {
                    case 'n' -> text.append('\n');
                    case 't' -> text.append('\t');
                    case 'r' -> text.append('\r');
                    case '\\', '\'', '"' -> text.append(escaped);
                    default -> text.append('\\').append(escaped);
                }
            } else {
                text.append(c);
            }
        }
        if (at >= source.length()) {
            throw new TemplateException("a text without its closing " + quote);
        }
        at++;
        return text.toString();
    }
}
