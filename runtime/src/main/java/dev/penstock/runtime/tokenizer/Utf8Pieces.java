package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.StandardCharsets;

/**
 * Cuts a long UTF-8 text where GPT-2's encoding of the whole equals that of the parts one after
 * another: after a newline that has no white space before or behind it. (Runs of white space are
 * one token or several depending on what follows, so no cut may touch a run.)
 */
final class Utf8Pieces {
    private static final int PIECE = 1 << 18;

    private final InputStream in;
    private final CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
    private final ByteBuffer bytes = ByteBuffer.allocate(1 << 16).limit(0);
    private final CharBuffer chars = CharBuffer.allocate(1 << 16);
    private final StringBuilder text = new StringBuilder();
    private long offset;
    private boolean ended;

    Utf8Pieces(InputStream in) {
        this.in = in;
    }

    /** Returns the next piece; empty at the end of the text. */
    String next() throws IOException {
        int searched = 1;
        while (!ended) {
            int cut = text.length() < PIECE ? -1 : lastCut(searched);
            if (cut > 0) {
                return take(cut);
            }
            searched = text.length() < PIECE ? 1 : Math.max(1, text.length() - 1);
            fill();
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
            if (text.charAt(at - 1) == '\n' && isInk(at - 2) && isInk(at)) {
                return at;
            }
        }
        return -1;
    }

    private boolean isInk(int at) {
        // the white space of the encoding's pattern, and a little more
        char c = text.charAt(at);
        return !Character.isWhitespace(c) && !Character.isSpaceChar(c) && c != '\u0085';
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
