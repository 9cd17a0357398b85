package dev.penstock.runtime.tokenizer;

import java.nio.file.Path;

/** A tokenizer's file is missing, torn, or asks for what is not implemented. */
public final class TokenizerFileException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Path path;
    private final String expected;
    private final String got;
    private final String advice;

    /**
     * @param path the file
     * @param expected what would have been right
     * @param got what was found
     * @param advice what to try, empty where what was found says it
     */
    public TokenizerFileException(Path path, String expected, String got, String advice) {
        super(
                "%s: expected %s, got %s%s"
                        .formatted(path, expected, got, advice.isEmpty() ? "" : "; " + advice));
        this.path = path;
        this.expected = expected;
        this.got = got;
        this.advice = advice;
    }

    /** Returns the file. */
    public Path path() {
        return path;
    }

    /** Returns what would have been right. */
    public String expected() {
        return expected;
    }

    /** Returns what was found. */
    public String got() {
        return got;
    }

    /** Returns what to try; may be empty. */
    public String advice() {
        return advice;
    }
}
