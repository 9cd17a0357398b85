package dev.penstock.runtime.data;

import dev.penstock.runtime.data.rows.RowsApart;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A run's requirements of its data.
 *
 * @param source a file, a folder (all files below it that are not hidden) or a glob
 * @param field member of a JSON line, or column of a table, that holds the text
 * @param tokenizer makes tokens of text; not used for a safetensors file of tokens
 * @param vocabulary rows of the model's token embedding; every token is below it
 * @param validationFraction share of the text's tokens, at its end, that is held out; 0 for none, 1
 *     for all: then there is nothing to train on
 * @param context tokens of a sequence
 * @param sequences of a step
 * @param microBatches of a step; divides {@code sequences}
 * @param smallerLast whether the last step of an epoch has only the remaining sequences; otherwise
 *     it continues with the next epoch
 * @param steps of the run
 * @param seed decides the order of the training windows
 * @param marking what else is to be known of the tokens
 * @param apart how rows of one document each come together; empty where rows are stretches of text
 */
public record DataSpec(
        Path source,
        DataFormat format,
        String field,
        Tokenizer tokenizer,
        int vocabulary,
        double validationFraction,
        int context,
        int sequences,
        int microBatches,
        boolean smallerLast,
        long steps,
        long seed,
        Marking marking,
        Optional<RowsApart> apart) {
    /** Data of whose tokens nothing else is asked. */
    public DataSpec(
            Path source,
            DataFormat format,
            String field,
            Tokenizer tokenizer,
            int vocabulary,
            double validationFraction,
            int context,
            int sequences,
            int microBatches,
            boolean smallerLast,
            long steps,
            long seed) {
        this(
                source,
                format,
                field,
                tokenizer,
                vocabulary,
                validationFraction,
                context,
                sequences,
                microBatches,
                smallerLast,
                steps,
                seed,
                Marking.NONE,
                Optional.empty());
    }

    /** Returns the same with this asked of its tokens. */
    public DataSpec marking(Marking asked) {
        return new DataSpec(
                source,
                format,
                field,
                tokenizer,
                vocabulary,
                validationFraction,
                context,
                sequences,
                microBatches,
                smallerLast,
                steps,
                seed,
                asked,
                apart);
    }

    /** Returns the same with one document in a row. */
    public DataSpec apart(RowsApart rows) {
        return new DataSpec(
                source,
                format,
                field,
                tokenizer,
                vocabulary,
                validationFraction,
                context,
                sequences,
                microBatches,
                smallerLast,
                steps,
                seed,
                marking,
                Optional.of(rows));
    }

    /** Returns the sequences of one micro-batch. */
    public int sequencesPerMicroBatch() {
        return sequences / microBatches;
    }

    /** Rejects a buffer that ends within a row, which would be filled only in part. */
    void requireWholeRows(int[] batch) {
        if (batch.length % (context + 1) != 0) {
            throw new IllegalArgumentException(
                    "expected room for rows of %d tokens (context + 1), got %d"
                            .formatted(context + 1, batch.length));
        }
    }
}
