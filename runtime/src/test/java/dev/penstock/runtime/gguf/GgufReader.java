package dev.penstock.runtime.gguf;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads small GGUF files, written from the format's description alone (ggml's docs/gguf.md, version
 * 3) and sharing nothing with the code that writes them.
 */
final class GgufReader {
    final Map<String, Object> metadata = new LinkedHashMap<>();
    final Map<String, Tensor> tensors = new LinkedHashMap<>();
    private final ByteBuffer file;

    /** Dimensions as in the file, the one of neighbours first. */
    record Tensor(long[] dimensions, int type, float[] values) {}

    GgufReader(Path path) throws IOException {
        file = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
        byte[] magic = new byte[4];
        file.get(magic);
        if (!new String(magic, StandardCharsets.US_ASCII).equals("GGUF") || file.getInt() != 3) {
            throw new IOException("no GGUF of version 3");
        }
        long tensorCount = file.getLong();
        long valueCount = file.getLong();
        for (long i = 0; i < valueCount; i++) {
            String key = text();
            if (!key.matches("[a-z0-9_]+(\\.[a-z0-9_]+)*")) {
                throw new IOException("not a key: " + key);
            }
            metadata.put(key, value(file.getInt()));
        }
        record Info(String name, long[] dimensions, int type, long offset) {}
        List<Info> infos = new ArrayList<>();
        for (long i = 0; i < tensorCount; i++) {
            String name = text();
            long[] dimensions = new long[file.getInt()];
            for (int d = 0; d < dimensions.length; d++) {
                dimensions[d] = file.getLong();
            }
            infos.add(new Info(name, dimensions, file.getInt(), file.getLong()));
        }
        long alignment = metadata.get("general.alignment") instanceof Integer given ? given : 32;
        long data = (file.position() + alignment - 1) / alignment * alignment;
        for (Info info : infos) {
            if (info.offset() % alignment != 0 || info.name().length() > 64) {
                throw new IOException("against the rules: " + info);
            }
            long elements = 1;
            for (long dimension : info.dimensions()) {
                elements *= dimension;
            }
            file.position(Math.toIntExact(data + info.offset()));
            float[] values = values(info.type(), Math.toIntExact(elements));
            tensors.put(info.name(), new Tensor(info.dimensions(), info.type(), values));
        }
    }

    /** Returns a tensor that must be there. */
    Tensor tensor(String name) {
        return requireNonNull(tensors.get(name), name);
    }

    /** Returns a value that must be there. */
    Object value(String key) {
        return requireNonNull(metadata.get(key), key);
    }

    private float[] values(int type, int elements) throws IOException {
        float[] values = new float[elements];
        switch (type) {
            case 0 -> file.asFloatBuffer().get(values);
            case 1 -> {
                for (int i = 0; i < elements; i++) {
                    values[i] = Float.float16ToFloat(file.getShort());
                }
            }
            case 8 -> {
                for (int i = 0; i < elements; i += 32) {
                    float scale = Float.float16ToFloat(file.getShort());
                    for (int j = 0; j < 32; j++) {
                        values[i + j] = scale * file.get();
                    }
                }
            }
            case 30 -> {
                for (int i = 0; i < elements; i++) {
                    values[i] = Float.intBitsToFloat(file.getShort() << 16);
                }
            }
            default -> throw new IOException("type " + type);
        }
        return values;
    }

    private Object value(int kind) throws IOException {
        return switch (kind) {
            case 0, 1 -> file.get();
            case 2, 3 -> file.getShort();
            case 4, 5 -> file.getInt();
            case 6 -> file.getFloat();
            case 7 -> file.get() == 1;
            case 8 -> text();
            case 9 -> {
                int of = file.getInt();
                long length = file.getLong();
                List<Object> list = new ArrayList<>();
                for (long i = 0; i < length; i++) {
                    list.add(value(of));
                }
                yield list;
            }
            case 10, 11 -> file.getLong();
            case 12 -> file.getDouble();
            default -> throw new IOException("kind " + kind);
        };
    }

    private String text() {
        byte[] utf8 = new byte[Math.toIntExact(file.getLong())];
        file.get(utf8);
        return new String(utf8, StandardCharsets.UTF_8);
    }
}
