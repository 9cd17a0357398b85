package dev.penstock.actors.serialization;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;

/** How values of one type lie on the wire. Stateless; the reader trusts nothing it reads. */
interface WireForm {
    void write(Kryo kryo, Output output, Object value);

    Object read(Kryo kryo, Input input);

    /** A form from its two halves. */
    static WireForm of(Writer writer, Reader reader) {
        return new WireForm() {
            @Override
            public void write(Kryo kryo, Output output, Object value) {
                writer.write(kryo, output, value);
            }

            @Override
            public Object read(Kryo kryo, Input input) {
                return reader.read(kryo, input);
            }
        };
    }

    /** Writes a value. */
    @FunctionalInterface
    interface Writer {
        void write(Kryo kryo, Output output, Object value);
    }

    /** Reads a value. */
    @FunctionalInterface
    interface Reader {
        Object read(Kryo kryo, Input input);
    }
}
