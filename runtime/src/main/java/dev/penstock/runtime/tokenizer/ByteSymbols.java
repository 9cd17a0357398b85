package dev.penstock.runtime.tokenizer;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * GPT-2's way to write bytes as characters, so that a vocabulary is a list of words one can see: a
 * byte that is a visible character of Latin-1 is that character, the others in turn are those from
 * U+0100 on (a space is {@code Ġ}, a newline {@code Ċ}).
 */
public final class ByteSymbols {
    private static final char[] CHARS = new char[256];
    private static final short[] BYTES = new short[512];

    static {
        Arrays.fill(BYTES, (short) -1);
        char next = 256;
        for (int value = 0; value < 256; value++) {
            CHARS[value] = isVisible(value) ? (char) value : next++;
            BYTES[CHARS[value]] = (short) value;
        }
    }

    private ByteSymbols() {}

    private static boolean isVisible(int value) {
        return (value >= '!' && value <= '~')
                || (value >= 0xa1 && value <= 0xac)
                || (value >= 0xae && value <= 0xff);
    }

    /** Returns the character that stands for a byte from 0 to 255. */
    static char of(int value) {
        return CHARS[value];
    }

    /** Returns how these bytes are written. */
    public static String of(byte[] bytes) {
        StringBuilder text = new StringBuilder(bytes.length);
        for (byte value : bytes) {
            text.append(CHARS[Byte.toUnsignedInt(value)]);
        }
        return text.toString();
    }

    /** Returns the bytes that are written so; a character that stands for none is itself. */
    static byte[] bytes(String token) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(token.length());
        token.codePoints()
                .forEach(
                        c -> {
                            if (c < BYTES.length && BYTES[c] >= 0) {
                                bytes.write(BYTES[c]);
                            } else {
                                bytes.writeBytes(
                                        Character.toString(c).getBytes(StandardCharsets.UTF_8));
                            }
                        });
        return bytes.toByteArray();
    }
}
