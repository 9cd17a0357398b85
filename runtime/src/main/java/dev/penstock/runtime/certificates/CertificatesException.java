package dev.penstock.runtime.certificates;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if certificates cannot be made, read or trusted; the message gives the reason, for people.
 */
public final class CertificatesException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    CertificatesException(String message) {
        this(message, null);
    }

    CertificatesException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
