package dev.penstock.runtime.tokenizer;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Every byte is a token, so any file is text. Documents are separated by a newline. */
public final class BytesTokenizer implements Tokenizer {
    static final String NAME = "bytes";
    static final int TOKENS = 256;

    private static final int PIECE = 1 << 18;

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String fingerprint() {
        return NAME;
    }

    @Override
    public int vocabulary() {
        return TOKENS;
    }

    @Override
    public int documentSeparator() {
        return '\n';
    }

    @Override
    public int[] encode(String text) {
        return tokens(text.getBytes(StandardCharsets.UTF_8));
    }

    private static int[] tokens(byte[] bytes) {
        int[] tokens = new int[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            tokens[i] = Byte.toUnsignedInt(bytes[i]);
        }
        return tokens;
    }

    @Override
    public TextPieces pieces(InputStream text) {
        return () -> {
            byte[] piece = text.readNBytes(PIECE);
            return piece.length == 0 ? null : new BytesPiece(piece);
        };
    }

    private record BytesPiece(byte[] content) implements TextPieces.Piece {
        @Override
        public int bytes() {
            return content.length;
        }

        @Override
        public int[] encode() {
            return tokens(content);
        }
    }

    @Override
    public byte[] bytes(int token) {
        return token >= 0 && token < 256 ? new byte[] {(byte) token} : Tokenizer.unknown();
    }
}
