package dev.penstock.actors.serialization;

import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;

/** Lengths on the wire: bounded by what is left of the message before anything is allocated. */
final class Lengths {
    private Lengths() {}

    static void write(Output output, int length) {
        output.writeVarInt(length, true);
    }

    /**
     * @param elementBytes least bytes that each element takes
     */
    static int read(Input input, int elementBytes) {
        int length = input.readVarInt(true);
        int left = input.limit() - input.position();
        if (length < 0 || length > left / elementBytes) {
            throw new KryoException(
                    "a length of %d elements of at least %d bytes where %d bytes are left"
                            .formatted(length, elementBytes, left));
        }
        return length;
    }
}
