package dev.penstock.runtime.safetensors;

import com.fasterxml.jackson.core.JacksonException;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A checkpoint or weights file that cannot be read, written or used. The message names the file.
 */
public final class StoredFileException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * @param path the file or directory at fault
     * @param problem what was expected, what was found, what to try
     */
    public StoredFileException(Path path, String problem) {
        this(path, problem, null);
    }

    /** Same as above, with the cause. */
    public StoredFileException(Path path, String problem, @Nullable Throwable cause) {
        super(path + ": " + problem, cause);
    }

    /** Describes an input or output error in words. */
    public static StoredFileException of(Path path, String doing, Exception cause) {
        String reason =
                switch (cause) {
                    case NoSuchFileException missing -> "no such file (" + missing.getFile() + ")";
                    case CharacterCodingException _ -> "it is no text";
                    case AccessDeniedException denied -> "no permission (" + denied.getFile() + ")";
                    default -> cause.getMessage() == null ? cause.toString() : cause.getMessage();
                };
        return new StoredFileException(path, "cannot " + doing + ": " + reason, cause);
    }

    /**
     * Returns whether the file is damaged or missing, which stays so. Else it could not be read or
     * written now and here.
     */
    public boolean isDamage() {
        return switch (getCause()) {
            case NoSuchFileException _, CharacterCodingException _, JacksonException _ -> true;
            case IOException _ -> false;
            case null, default -> true;
        };
    }
}
