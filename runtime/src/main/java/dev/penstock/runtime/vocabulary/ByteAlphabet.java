package dev.penstock.runtime.vocabulary;

/**
 * GPT-2's way to write any bytes as a text without blanks: a byte that is a visible character of
 * Latin-1 stands for itself, the others take the characters from U+0100 on, in order.
 */
final class ByteAlphabet {
    private final char[] characters = new char[256];

    ByteAlphabet() {
        char next = 256;
        for (int b = 0; b < 256; b++) {
            boolean visible = (b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad);
            characters[b] = visible ? (char) b : next++;
        }
    }

    /** Returns the text that stands for these bytes. */
    String text(byte[] bytes) {
        StringBuilder text = new StringBuilder(bytes.length);
        for (byte each : bytes) {
            text.append(characters[Byte.toUnsignedInt(each)]);
        }
        return text.toString();
    }
}
