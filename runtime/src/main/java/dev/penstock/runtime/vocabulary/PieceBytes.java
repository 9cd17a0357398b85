package dev.penstock.runtime.vocabulary;

import java.util.Collection;
import java.util.stream.IntStream;

/** Tokens that stand for a byte, as SentencePiece writes them: {@code <0x0A>}. */
final class PieceBytes {
    private PieceBytes() {}

    static boolean is(String token) {
        return token.length() == 6
                && token.startsWith("<0x")
                && token.endsWith(">")
                && isHex(token.charAt(3))
                && isHex(token.charAt(4));
    }

    private static boolean isHex(char sign) {
        return "0123456789ABCDEF".indexOf(sign) >= 0;
    }

    /** Returns how many of the 256 there are. */
    static long count(Collection<String> tokens) {
        return IntStream.range(0, 256)
                .mapToObj("<0x%02X>"::formatted)
                .filter(tokens::contains)
                .count();
    }
}
