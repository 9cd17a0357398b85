package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;

/**
 * Cuts a long UTF-8 text where the encoding of the whole equals that of the parts one after
 * another: after a newline that has no white space before or behind it. (Runs of white space are
 * one token or several depending on what follows, so no cut may touch a run.)
 */
final class Utf8Pieces {
    private static final int PIECE = 1 << 18;

    /** What has to stand on both sides of a newline after which a text is cut. */
    enum Cut {
        /** Anything but white space, which is enough for GPT-2's words. */
        AT_INK {
            @Override
            boolean beside(char c) {
                // the white space of the encoding's pattern, and a little more
                return !Character.isWhitespace(c) && !Character.isSpaceChar(c) && c != '\u0085';
            }
        },
        /** A letter or digit: some patterns take a newline into the word of a mark beside it. */
        AT_LETTERS {
            @Override
            boolean beside(char c) {
                return Character.isLetterOrDigit(c);
            }
        };

        abstract boolean beside(char c);
    }

    /** Characters of a piece from which on it ends at the next cut. */
    private final int piece;

    /** Characters that a piece may have. */
    private final int longest;

    private final InputStream in;
    private final Cut rule;
    private final CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
    private final ByteBuffer bytes = ByteBuffer.allocate(1 << 16).limit(0);
    private final CharBuffer chars = CharBuffer.allocate(1 << 16);
    private final StringBuilder text = new StringBuilder();
    private long offset;
    private boolean ended;

    Utf8Pieces(InputStream in, Cut rule) {
        this(in, rule, PIECE, Integer.MAX_VALUE);
    }

    private Utf8Pieces(InputStream in, Cut rule, int piece, int longest) {
        this.in = in;
        this.rule = rule;
        this.piece = piece;
        this.longest = longest;
    }

    /**
     * Does not cut at all.
     *
     * @param longest characters that the text may have
     */
    static Utf8Pieces whole(InputStream in, int longest) {
        return new Utf8Pieces(in, Cut.AT_INK, Integer.MAX_VALUE, longest);
    }

    /** Returns the pieces as they are encoded. */
    TextPieces encodedBy(Function<String, int[]> encode) {
        return () -> {
            String text = next();
            return text.isEmpty() ? null : new EncodedPiece(text, encode);
        };
    }

    /** A piece of text and how it becomes tokens. */
    record EncodedPiece(String text, Function<String, int[]> how) implements TextPieces.Piece {
        @Override
        public int bytes() {
            return utf8Length(text);
        }

        @Override
        public int[] encode() {
            return how.apply(text);
        }
    }

    /** Returns how many bytes well-formed text has. */
    static int utf8Length(String text) {
        int bytes = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            // each half of a pair is two of the four bytes
            bytes += c < 0x80 ? 1 : c < 0x800 || Character.isSurrogate(c) ? 2 : 3;
        }
        return bytes;
    }

    /** Returns the next piece; empty at the end of the text. */
    String next() throws IOException {
        int searched = 1;
        while (!ended) {
            int cut = text.length() < piece ? -1 : lastCut(searched);
            if (cut > 0) {
                return take(cut);
            }
            searched = text.length() < piece ? 1 : Math.max(1, text.length() - 1);
            fill();
            if (text.length() > longest) {
                throw new TextTooLongException(longest);
            }
        }
        return take(text.length());
    }

    private String take(int length) {
        String piece = text.substring(0, length);
        text.delete(0, length);
        return piece;
    }

    private int lastCut(int from) {
        for (int at = text.length() - 1; at > from; at--) {
            if (text.charAt(at - 1) == '\n'
                    && rule.beside(text.charAt(at - 2))
                    && rule.beside(text.charAt(at))) {
                return at;
            }
        }
        return -1;
    }

    private void fill() throws IOException {
        bytes.compact();
        int read = in.read(bytes.array(), bytes.position(), bytes.remaining());
        ended = read < 0;
        bytes.position(bytes.position() + Math.max(read, 0)).flip();
        int before = bytes.position();
        CoderResult result = decoder.decode(bytes, chars, ended);
        offset += bytes.position() - before;
        if (result.isError()) {
            throw new NotUtf8Exception(offset);
        }
        text.append(chars.flip());
        chars.clear();
    }
}
