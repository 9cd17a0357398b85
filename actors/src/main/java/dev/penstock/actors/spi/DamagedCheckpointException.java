package dev.penstock.actors.spi;

/**
 * Thrown where a rank is to start from a checkpoint that is damaged or not there. An older one may
 * do. A file that could not be read for another reason, such as a disk's, is none of these.
 */
public final class DamagedCheckpointException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * @param message names the file and what is wrong with it
     */
    public DamagedCheckpointException(String message, Throwable cause) {
        super(message, cause);
    }
}
