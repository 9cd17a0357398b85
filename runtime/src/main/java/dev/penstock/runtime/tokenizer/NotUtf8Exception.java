package dev.penstock.runtime.tokenizer;

import java.io.IOException;

/** Thrown for a text that has to be UTF-8 and is not. */
public final class NotUtf8Exception extends IOException {
    private static final long serialVersionUID = 1L;

    private final long offset;

    /**
     * @param offset of the first invalid byte, from 0
     */
    public NotUtf8Exception(long offset) {
        super("byte %d is not UTF-8".formatted(offset));
        this.offset = offset;
    }

    /** Returns the first invalid byte, from 0 where reading began. */
    public long offset() {
        return offset;
    }
}
