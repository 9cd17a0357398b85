package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.function.IntConsumer;

/** Every byte is a token, so any file is text. Documents are separated by a newline. */
public final class BytesTokenizer implements Tokenizer {
    static final String NAME = "bytes";

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public int vocabulary() {
        return 256;
    }

    @Override
    public int documentSeparator() {
        return '\n';
    }

    @Override
    public int[] encode(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int[] tokens = new int[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            tokens[i] = Byte.toUnsignedInt(bytes[i]);
        }
        return tokens;
    }

    @Override
    public void encode(InputStream text, IntConsumer tokens) throws IOException {
        byte[] buffer = new byte[1 << 16];
        for (int read = text.read(buffer); read >= 0; read = text.read(buffer)) {
            for (int i = 0; i < read; i++) {
                tokens.accept(Byte.toUnsignedInt(buffer[i]));
            }
        }
    }

    @Override
    public byte[] bytes(int token) {
        return token >= 0 && token < 256 ? new byte[] {(byte) token} : Tokenizer.unknown();
    }
}
