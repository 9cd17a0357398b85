package dev.penstock.runtime.torchfile;

/** Thrown inside this package if a file is not what it should be; the message lacks its name. */
final class MalformedException extends Exception {
    private static final long serialVersionUID = 1L;

    MalformedException(String problem) {
        super(problem);
    }
}
