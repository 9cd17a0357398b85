package dev.penstock.runtime.tokenizer;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/**
 * Turns tokens into text as they arrive: a character whose bytes are spread over several tokens
 * appears when its last byte does. Not thread-safe.
 */
public final class StreamingDecoder {
    private final Tokenizer tokenizer;
    private final CharsetDecoder decoder =
            StandardCharsets.UTF_8
                    .newDecoder()
                    .onMalformedInput(CodingErrorAction.REPLACE)
                    .onUnmappableCharacter(CodingErrorAction.REPLACE);
    private byte[] pending = {};

    public StreamingDecoder(Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
    }

    /** Returns the text that this token completes; may be empty. */
    public String next(int token) {
        return decode(tokenizer.bytes(token), false);
    }

    /** Returns what is left when no token follows: nothing, or U+FFFD for a character cut short. */
    public String end() {
        String rest = decode(new byte[0], true);
        decoder.reset();
        return rest;
    }

    private String decode(byte[] more, boolean last) {
        ByteBuffer in = ByteBuffer.allocate(pending.length + more.length);
        in.put(pending).put(more).flip();
        CharBuffer out = CharBuffer.allocate(in.remaining() + 1);
        decoder.decode(in, out, last);
        pending = new byte[in.remaining()];
        in.get(pending);
        return out.flip().toString();
    }
}
