package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.DType;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * How the matrices and the token table of a model that is not trained are held; vectors and tables
 * of positions are few, and F32.
 */
public enum HeldWeights {
    /** F32; beside it a rounded copy where products are of another {@link Precision}. */
    FLOAT32(Precision.FLOAT32, null),
    /** Rounded to bf16, and in no other form: half the memory. */
    BF16(Precision.BF16, DType.BF16),
    /** Integers of 8 bits with a scale for each row, multiplied in F32: a quarter of the memory. */
    INT8(Precision.FLOAT32, DType.I8);

    private final Precision precision;
    private final @Nullable DType narrow;

    HeldWeights(Precision precision, @Nullable DType narrow) {
        this.precision = precision;
        this.narrow = narrow;
    }

    /** Returns the precision in which they are multiplied. */
    public Precision precision() {
        return precision;
    }

    /** Returns their type, if that is narrower than F32. */
    public Optional<DType> narrow() {
        return Optional.ofNullable(narrow);
    }

    /** Returns the word by which users name it. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Returns all words. */
    public static List<String> words() {
        return Arrays.stream(values()).map(HeldWeights::word).toList();
    }

    /** Returns the one of this word, if there is one. */
    public static Optional<HeldWeights> of(String word) {
        return Arrays.stream(values()).filter(each -> each.word().equals(word)).findFirst();
    }
}
