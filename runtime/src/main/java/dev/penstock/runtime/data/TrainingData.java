package dev.penstock.runtime.data;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** An opened source of batches and its sizes. */
public interface TrainingData extends BatchSource {
    /**
     * Reads the data of a run.
     *
     * @throws DataException with all problems: missing, unreadable, too short, not text
     */
    static TrainingData open(DataSpec spec) {
        return open(spec, null);
    }

    /**
     * Reads the data of a run.
     *
     * @param given by the program that trains; null where files have the tokens
     * @throws DataException with all problems, as of {@link #open(DataSpec)}
     */
    static TrainingData open(DataSpec spec, @Nullable GivenTokens given) {
        TrainingData rows = rows(spec, given);
        return rows.inPlace()
                ? rows
                : spec.marking()
                        .masking()
                        .<TrainingData>map(masking -> new MaskedWords(rows, spec, masking))
                        .orElse(rows);
    }

    private static TrainingData rows(DataSpec spec, @Nullable GivenTokens given) {
        return switch (spec.format()) {
            case TEXT, JSONL, CHAT, PARQUET -> TextCorpus.open(spec);
            case TOKENS ->
                    PreparedTokens.areIn(spec.source())
                            ? TextCorpus.openPrepared(spec)
                            : TokenFile.open(spec);
            case GIVEN -> GivenCorpus.open(spec, given);
        };
    }

    /** Returns whether the tokens are those of the tokenizer, so that they can be read. */
    default boolean isText() {
        return true;
    }

    /** Returns whether there is held-out data, so that evaluations can be requested. */
    boolean hasHeldOut();

    /**
     * Returns the number of held-out batches, of which the last may be smaller; 0 if nothing is
     * held out.
     */
    int heldOutBatches();

    /** Returns how many rows the first held-out batches have, each of them once. */
    long heldOutRows(int batches);

    /** Returns how many rows come again in every epoch, by number; 0 if none do. */
    default int rows() {
        return 0;
    }

    /** Returns the training steps until the data begins again or ends, at least 1. */
    long stepsOfEpoch();

    /**
     * Returns how many tokens of a row are trained on, on average.
     *
     * @param context all of them, where rows are full
     */
    default double meanTokens(int context) {
        return context;
    }

    /** Returns the total number of tokens to train on. */
    long trainingTokens();

    /**
     * Returns the bytes of text for which the targets of the first held-out sequences stand: the
     * divisor of a loss in bits per byte. Tokens that only separate documents stand for none.
     *
     * @param sequences as many as evaluations read, in their order
     */
    long heldOutBytes(long sequences);

    /**
     * Returns how many targets of the first held-out sequences count.
     *
     * @param sequences as many as evaluations read, in their order; those that do not exist have
     *     none
     */
    default long heldOutTargets(long sequences) {
        return heldOutTargets(0, sequences);
    }

    /**
     * The same of any of them.
     *
     * @param first of them, in the order of evaluations
     */
    long heldOutTargets(long first, long sequences);

    /** Returns which targets count; empty if all of the text does. */
    Optional<CountedTargets> counted();

    /** Returns one line for people on what was read. */
    String description();
}
