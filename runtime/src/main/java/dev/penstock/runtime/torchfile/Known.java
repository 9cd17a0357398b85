package dev.penstock.runtime.torchfile;

import dev.penstock.runtime.safetensors.StoredType;
import java.util.Arrays;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The Python names that a table of contents may use. A name that is not here is refused; none of
 * these is ever called: they only tell what the values beside them mean.
 */
enum Known {
    ORDERED_DICT("collections", "OrderedDict", null),
    REBUILD_TENSOR("torch._utils", "_rebuild_tensor_v2", null),
    REBUILD_PARAMETER("torch._utils", "_rebuild_parameter", null),
    DOUBLE("torch", "DoubleStorage", StoredType.F64),
    FLOAT("torch", "FloatStorage", StoredType.F32),
    HALF("torch", "HalfStorage", StoredType.F16),
    BFLOAT16("torch", "BFloat16Storage", StoredType.BF16),
    LONG("torch", "LongStorage", StoredType.I64),
    INT("torch", "IntStorage", StoredType.I32),
    SHORT("torch", "ShortStorage", StoredType.I16),
    CHAR("torch", "CharStorage", StoredType.I8),
    BYTE("torch", "ByteStorage", StoredType.U8),
    BOOL("torch", "BoolStorage", StoredType.BOOL);

    private final String module;
    private final String pythonName;
    private final @Nullable StoredType storage;

    Known(String module, String pythonName, @Nullable StoredType storage) {
        this.module = module;
        this.pythonName = pythonName;
        this.storage = storage;
    }

    static Optional<Known> of(String module, String pythonName) {
        return Arrays.stream(values())
                .filter(each -> each.module.equals(module) && each.pythonName.equals(pythonName))
                .findFirst();
    }

    /** Returns the type of the elements if this is a kind of storage. */
    Optional<StoredType> storage() {
        return Optional.ofNullable(storage);
    }
}
