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
 * another: after a newline that has no white space before or behind it, and in a line that is very
 * long also before a space like that, if words begin with their space. (Runs of white space are one
 * token or several depending on what follows, so no cut may touch a run.) A text without such a
 * place for too long is refused, so memory is bounded.
 */
final class Utf8Pieces {
    private static final int PIECE = 1 << 18;

    /** Characters of a piece from which on it may end before a space, too. */
    private static final int LINE = 1 << 20;

    /** Characters that a piece may have; an encoder may keep a hundred bytes for each. */
    private static final int LONGEST = 16 << 20;

    /** What has to stand on both sides of a newline after which a text is cut. */
    enum Cut {
        /**
         * Anything but white space, which is enough for GPT-2's words. They begin with the space
         * before them.
         */
        AT_INK("a newline or a space between two words") {
            @Override
            boolean beside(char c) {
                // the white space of the encoding's pattern, and a little more
                return !Character.isWhitespace(c) && !Character.isSpaceChar(c) && c != '\u0085';
            }
        },
        /** A letter or digit: some patterns take a newline into the word of a mark beside it. */
        AT_LETTERS("a newline between letters or digits") {
            @Override
            boolean beside(char c) {
                return Character.isLetterOrDigit(c);
            }
        };

        private final String place;

        Cut(String place) {
            this.place = place;
        }

        abstract boolean beside(char c);
    }

    /** Characters of a piece from which on it ends at the next cut. */
    private final int piece;

    /** Where a text must have a place to cut, for a message; empty if it is not cut at all. */
    private final String place;

    private final InputStream in;
    private final Cut rule;
    private final CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
    private final ByteBuffer bytes = ByteBuffer.allocate(1 << 16).limit(0);
    private final CharBuffer chars = CharBuffer.allocate(1 << 16);
    private final StringBuilder text = new StringBuilder();
    private long offset;
    private boolean ended;

    Utf8Pieces(InputStream in, Cut rule) {
        this(in, rule, PIECE, rule.place);
    }

    private Utf8Pieces(InputStream in, Cut rule, int piece, String place) {
        this.in = in;
        this.rule = rule;
        this.piece = piece;
        this.place = place;
    }

    /** Does not cut at all. */
    static Utf8Pieces whole(InputStream in) {
        return new Utf8Pieces(in, Cut.AT_INK, Integer.MAX_VALUE, "");
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

    /**
     * Returns the next piece; empty at the end of the text. Where it ends depends on the text that
     * follows the piece before, and on nothing else.
     *
     * @throws TextTooLongException if there is no place to cut for too long
     */
    String next() throws IOException {
        int searched = piece;
        while (true) {
            for (; searched < text.length(); searched++) {
                if (isAfter('\n', searched)) {
                    return take(searched);
                }
                if (searched > LINE && rule == Cut.AT_INK && isAfter(' ', searched)) {
                    return take(searched - 1);
                }
            }
            if (ended) {
                return take(text.length());
            }
            fill();
            if (text.length() > LONGEST) {
                throw new TextTooLongException(LONGEST, place);
            }
        }
    }

    private String take(int length) {
        String taken = text.substring(0, length);
        text.delete(0, length);
        return taken;
    }

    private boolean isAfter(char white, int at) {
        return text.charAt(at - 1) == white
                && rule.beside(text.charAt(at - 2))
                && rule.beside(text.charAt(at));
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
