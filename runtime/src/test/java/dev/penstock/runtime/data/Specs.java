package dev.penstock.runtime.data;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;

/** A data specification to vary: bytes, 20 % held out, contexts of 8, steps of 4 in 2 parts. */
record Specs(DataSpec spec) {
    static Specs of(Path source) {
        return new Specs(
                new DataSpec(
                        source,
                        DataFormat.TEXT,
                        "text",
                        Tokenizer.named("bytes"),
                        256,
                        0.2,
                        8,
                        4,
                        2,
                        false,
                        5,
                        42));
    }

    Specs smallerLast() {
        return new Specs(
                new DataSpec(
                        spec.source(),
                        spec.format(),
                        spec.field(),
                        spec.tokenizer(),
                        spec.vocabulary(),
                        spec.validationFraction(),
                        spec.context(),
                        spec.sequences(),
                        spec.microBatches(),
                        true,
                        spec.steps(),
                        spec.seed()));
    }

    Specs format(DataFormat format) {
        return with(format, spec.field(), spec.tokenizer(), spec.validationFraction(), spec.seed());
    }

    Specs field(String field) {
        return with(spec.format(), field, spec.tokenizer(), spec.validationFraction(), spec.seed());
    }

    Specs tokenizer(String name) {
        Tokenizer tokenizer = Tokenizer.open(name);
        return with(spec.format(), spec.field(), tokenizer, spec.validationFraction(), spec.seed());
    }

    Specs validationFraction(double fraction) {
        return with(spec.format(), spec.field(), spec.tokenizer(), fraction, spec.seed());
    }

    Specs seed(long seed) {
        return with(spec.format(), spec.field(), spec.tokenizer(), spec.validationFraction(), seed);
    }

    private Specs with(
            DataFormat format, String field, Tokenizer tokenizer, double fraction, long seed) {
        return new Specs(
                new DataSpec(
                        spec.source(),
                        format,
                        field,
                        tokenizer,
                        tokenizer.vocabulary(),
                        fraction,
                        spec.context(),
                        spec.sequences(),
                        spec.microBatches(),
                        spec.smallerLast(),
                        spec.steps(),
                        seed));
    }

    Specs shape(int vocabulary, int context, int sequences, long steps) {
        return new Specs(
                new DataSpec(
                        spec.source(),
                        spec.format(),
                        spec.field(),
                        spec.tokenizer(),
                        vocabulary,
                        spec.validationFraction(),
                        context,
                        sequences,
                        2,
                        spec.smallerLast(),
                        steps,
                        spec.seed()));
    }
}
