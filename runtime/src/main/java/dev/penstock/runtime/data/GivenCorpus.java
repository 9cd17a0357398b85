package dev.penstock.runtime.data;

import dev.penstock.actors.spi.StepKind;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Tokens of a program as data, in the windows and the order of text of the same length. */
final class GivenCorpus implements TrainingData {
    private final GivenTokens given;
    private final TextCorpus tokens;

    private GivenCorpus(GivenTokens given, TextCorpus tokens) {
        this.given = given;
        this.tokens = tokens;
    }

    /**
     * @param given null where no program gives any
     * @throws DataException if there are none, too few, or not what they have to be
     */
    static GivenCorpus open(DataSpec spec, @Nullable GivenTokens given) {
        if (given == null) {
            throw refusal(
                    "data.format",
                    "a program that gives the tokens (dev.penstock.Penstock)",
                    "given, and no such program",
                    "train by that program, or name files in data.source");
        }
        if (spec.marking().documents()) {
            throw refusal(
                    "data.packing",
                    "none where a program gives the tokens",
                    spec.apart().isPresent() ? "one document in a row" : "documents",
                    "leave it out");
        }
        requireName(given);
        requireSameTwice(spec, given);
        return new GivenCorpus(
                given, TextCorpus.of(spec, new Row(given, spec.vocabulary()), given.identity()));
    }

    /** It is a line of a file of the run's, and says whether later tokens are the same. */
    private static void requireName(GivenTokens given) {
        if (given.identity().isBlank() || given.identity().lines().count() > 1) {
            throw refusal(
                    "data.source",
                    "an identity of one line that is not blank",
                    given.identity().isBlank() ? "a blank one" : "one of several lines",
                    "name what the tokens are, such as sensor log 2026-03");
        }
    }

    /** The first ones, which costs nothing and finds what was forgotten most often. */
    private static void requireSameTwice(DataSpec spec, GivenTokens given) {
        int count = (int) Math.min(given.size(), spec.context() + 1L);
        if (given.size() < 0) {
            throw refusal("data.source", "a size of 0 or more", "" + given.size(), "");
        }
        int[] once = new int[count];
        int[] again = new int[count];
        given.read(0, once, 0, count);
        given.read(0, again, 0, count);
        if (!Arrays.equals(once, again)) {
            throw refusal(
                    "data.source",
                    "tokens that are the same whenever they are read",
                    "%s: place %d has two"
                            .formatted(given.identity(), Arrays.mismatch(once, again)),
                    "compute them from their place alone");
        }
    }

    private static DataException refusal(String key, String expected, String got, String advice) {
        return new DataException(List.of(new DataProblem(key, expected, got, advice)));
    }

    /** A token outside of the vocabulary ends the run: an embedding has no row for it. */
    private record Row(GivenTokens given, int vocabulary) implements TokenRow {
        @Override
        public long size() {
            return given.size();
        }

        @Override
        public int get(long index) {
            int[] token = new int[1];
            copy(index, token, 0, 1);
            return token[0];
        }

        @Override
        public void copy(long first, int[] target, int offset, int count) {
            given.read(first, target, offset, count);
            for (int i = 0; i < count; i++) {
                int token = target[offset + i];
                if (token < 0 || token >= vocabulary) {
                    throw new IllegalStateException(
                            "%s: expected tokens from 0 to %d, got %d at place %d; try a larger model.vocabulary"
                                    .formatted(given.identity(), vocabulary - 1, token, first + i));
                }
            }
        }
    }

    @Override
    public void read(StepKind kind, long step, int microBatch, int[] batch) {
        tokens.read(kind, step, microBatch, batch);
    }

    @Override
    public int sequences(StepKind kind, long step, int full) {
        return tokens.sequences(kind, step, full);
    }

    @Override
    public boolean isText() {
        return false;
    }

    @Override
    public boolean hasHeldOut() {
        return tokens.hasHeldOut();
    }

    @Override
    public int heldOutBatches() {
        return tokens.heldOutBatches();
    }

    @Override
    public long heldOutRows(int batches) {
        return tokens.heldOutRows(batches);
    }

    @Override
    public long stepsOfEpoch() {
        return tokens.stepsOfEpoch();
    }

    @Override
    public long trainingTokens() {
        return tokens.trainingTokens();
    }

    /** Nobody knows what they stand for, so each counts as one. */
    @Override
    public long heldOutBytes(long sequences) {
        return heldOutTargets(sequences);
    }

    @Override
    public long heldOutTargets(long first, long sequences) {
        return tokens.heldOutTargets(first, sequences);
    }

    @Override
    public Optional<CountedTargets> counted() {
        return tokens.counted();
    }

    @Override
    public String description() {
        return "%,d tokens of a program (%s): %,d to train on, %,d held out"
                .formatted(
                        given.size(),
                        given.identity(),
                        trainingTokens(),
                        given.size() - trainingTokens());
    }
}
