package dev.penstock.runtime.gguf;

import java.util.List;

/** A value of GGUF's metadata. */
public sealed interface GgufValue {
    /** A number that counts something; what we write, 32 bits. */
    record Count(long value) implements GgufValue {}

    /** A number with a fraction. */
    record Real(double value) implements GgufValue {}

    /** A flag. */
    record Flag(boolean value) implements GgufValue {}

    /** A text in UTF-8. */
    record Text(String value) implements GgufValue {}

    /** A list of texts. */
    record Texts(List<String> values) implements GgufValue {
        public Texts {
            values = List.copyOf(values);
        }
    }

    /** A list of whole numbers, which may be negative. */
    record Numbers(List<Integer> values) implements GgufValue {
        public Numbers {
            values = List.copyOf(values);
        }
    }

    /** A list of numbers with fractions, 32 bits each. */
    record Reals(List<Float> values) implements GgufValue {
        public Reals {
            values = List.copyOf(values);
        }
    }

    /** A list of another kind in a file that is read; its elements are not kept. */
    record Skipped(String what, long length) implements GgufValue {}
}
