package dev.penstock.runtime.safetensors;

/** Thrown if a tensor has a value that the type it is to be written in cannot hold. */
public final class OutOfRangeException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * @param tensor its name
     * @param problem what its value is, and what to do
     */
    public OutOfRangeException(String tensor, String problem) {
        super(tensor + ": " + problem);
    }

    OutOfRangeException(String tensor, StoredType type) {
        super("%s: has a value beyond the range of %s; try bf16 or f32".formatted(tensor, type));
    }
}
