package dev.penstock.runtime.chat;

/** A template that cannot be read, or that does not take a chat. */
public final class TemplateException extends RuntimeException {
    private static final long serialVersionUID = 1;

    TemplateException(String message) {
        super(message);
    }
}
