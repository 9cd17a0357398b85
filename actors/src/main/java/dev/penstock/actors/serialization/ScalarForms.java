package dev.penstock.actors.serialization;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** Forms of types that hold no other type of ours. */
final class ScalarForms {
    private final Map<Class<?>, WireForm> forms = new HashMap<>();

    ScalarForms() {
        addPrimitives();
        addArrays();
        addOptionals();
        add(
                String.class,
                (_, output, value) -> writeText(output, (String) value),
                (_, input) -> readText(input));
        add(
                Duration.class,
                (_, output, value) -> {
                    output.writeLong(((Duration) value).toSeconds());
                    output.writeInt(((Duration) value).toNanosPart());
                },
                (_, input) -> Duration.ofSeconds(input.readLong(), input.readInt()));
    }

    @Nullable WireForm of(Class<?> type) {
        return forms.get(type);
    }

    static void writeText(Output output, String text) {
        byte[] bytes = text.getBytes(UTF_8);
        Lengths.write(output, bytes.length);
        output.writeBytes(bytes);
    }

    static String readText(Input input) {
        return new String(input.readBytes(Lengths.read(input, 1)), UTF_8);
    }

    private void add(Class<?> type, WireForm.Writer writer, WireForm.Reader reader) {
        forms.put(type, WireForm.of(writer, reader));
    }

    private void addPrimitives() {
        add(int.class, (_, out, v) -> out.writeInt((int) v), (_, in) -> in.readInt());
        add(long.class, (_, out, v) -> out.writeLong((long) v), (_, in) -> in.readLong());
        add(double.class, (_, out, v) -> out.writeDouble((double) v), (_, in) -> in.readDouble());
        add(float.class, (_, out, v) -> out.writeFloat((float) v), (_, in) -> in.readFloat());
        add(
                boolean.class,
                (_, out, v) -> out.writeByte((boolean) v ? 1 : 0),
                (_, in) -> readBoolean(in));
        forms.putAll(
                Map.of(
                        Integer.class, form(int.class),
                        Long.class, form(long.class),
                        Double.class, form(double.class),
                        Float.class, form(float.class),
                        Boolean.class, form(boolean.class)));
    }

    private void addArrays() {
        add(
                int[].class,
                (_, output, value) -> {
                    Lengths.write(output, ((int[]) value).length);
                    output.writeInts((int[]) value, 0, ((int[]) value).length);
                },
                (_, input) -> input.readInts(Lengths.read(input, Integer.BYTES)));
        add(
                long[].class,
                (_, output, value) -> writeSteps(output, (long[]) value),
                (_, input) -> readSteps(input));
        add(
                double[].class,
                (_, output, value) -> {
                    Lengths.write(output, ((double[]) value).length);
                    output.writeDoubles((double[]) value, 0, ((double[]) value).length);
                },
                (_, input) -> input.readDoubles(Lengths.read(input, Double.BYTES)));
    }

    /** As differences: the times of a step's ops are many, and each is near the one before. */
    private static void writeSteps(Output output, long[] values) {
        Lengths.write(output, values.length);
        long last = 0;
        for (long value : values) {
            output.writeVarLong(value - last, false);
            last = value;
        }
    }

    private static long[] readSteps(Input input) {
        long[] values = new long[Lengths.read(input, 1)];
        long last = 0;
        for (int i = 0; i < values.length; i++) {
            last += input.readVarLong(false);
            values[i] = last;
        }
        return values;
    }

    private void addOptionals() {
        add(
                OptionalInt.class,
                (_, output, value) -> {
                    output.writeByte(((OptionalInt) value).isPresent() ? 1 : 0);
                    ((OptionalInt) value).ifPresent(output::writeInt);
                },
                (_, input) ->
                        readBoolean(input) ? OptionalInt.of(input.readInt()) : OptionalInt.empty());
        add(
                OptionalLong.class,
                (_, output, value) -> {
                    output.writeByte(((OptionalLong) value).isPresent() ? 1 : 0);
                    ((OptionalLong) value).ifPresent(output::writeLong);
                },
                (_, input) ->
                        readBoolean(input)
                                ? OptionalLong.of(input.readLong())
                                : OptionalLong.empty());
        add(
                OptionalDouble.class,
                (_, output, value) -> {
                    output.writeByte(((OptionalDouble) value).isPresent() ? 1 : 0);
                    ((OptionalDouble) value).ifPresent(output::writeDouble);
                },
                (_, input) ->
                        readBoolean(input)
                                ? OptionalDouble.of(input.readDouble())
                                : OptionalDouble.empty());
    }

    static boolean readBoolean(Input input) {
        byte value = input.readByte();
        if (value != 0 && value != 1) {
            throw new KryoException("expected 0 or 1, got " + value);
        }
        return value == 1;
    }

    private WireForm form(Class<?> type) {
        WireForm form = forms.get(type);
        if (form == null) {
            throw new IllegalStateException("no form of " + type);
        }
        return form;
    }
}
