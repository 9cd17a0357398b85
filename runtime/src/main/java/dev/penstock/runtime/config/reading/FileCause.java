package dev.penstock.runtime.config.reading;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;

/** Says in plain words why a file could not be read or written. */
public final class FileCause {
    private FileCause() {}

    /** Same as {@link #of}, after the file's name where it is known. */
    public static String withFile(IOException e) {
        return e instanceof FileSystemException named && named.getFile() != null
                ? named.getFile() + ": " + of(e)
                : of(e);
    }

    /** A few words for a user, such as {@code no such file}; without the file's name. */
    public static String of(IOException e) {
        return switch (e) {
            case NoSuchFileException _ -> "no such file";
            case AccessDeniedException _ -> "permission denied";
            case NotDirectoryException _ -> "not a folder";
            case CharacterCodingException _ -> "not UTF-8 text";
            case FileSystemException named when named.getReason() != null -> named.getReason();
            default -> e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        };
    }
}
