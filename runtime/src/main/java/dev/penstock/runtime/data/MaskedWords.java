package dev.penstock.runtime.data;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.rows.Masking;
import java.util.Optional;

/**
 * Data of which some words are hidden, anew in every step, and alone count as targets: those in
 * their own places.
 *
 * @param words the data as it stands
 */
record MaskedWords(TrainingData words, DataSpec spec, Masking masking) implements TrainingData {
    @Override
    public boolean inPlace() {
        return true;
    }

    @Override
    public boolean masked() {
        return true;
    }

    @Override
    public void read(StepKind kind, long step, int microBatch, int[] tokens) {
        words.read(kind, step, microBatch, tokens);
    }

    @Override
    public void inputs(StepKind kind, long step, int microBatch, int[] tokens) {
        words.read(kind, step, microBatch, tokens);
        int row = spec.context() + 1;
        for (int b = 0; b < tokens.length / row; b++) {
            Masking.Row choices = choices(kind, step, microBatch, b);
            for (int place = 0; place < spec.context(); place++) {
                if (choices.isChosen(place)) {
                    int at = b * row + place;
                    tokens[at] = choices.input(place, tokens[at]);
                }
            }
        }
    }

    @Override
    public void marks(StepKind kind, long step, int microBatch, byte[] marks) {
        int row = spec.context() + 1;
        for (int b = 0; b < marks.length / row; b++) {
            Masking.Row choices = choices(kind, step, microBatch, b);
            for (int place = 0; place <= spec.context(); place++) {
                boolean counts = place < spec.context() && choices.isChosen(place);
                marks[b * row + place] = counts ? 0 : UNCOUNTED;
            }
        }
    }

    private Masking.Row choices(StepKind kind, long step, int microBatch, int sequence) {
        long first = (long) microBatch * spec.sequencesPerMicroBatch();
        return masking.row(spec.seed(), kind, step, first + sequence);
    }

    @Override
    public int sequences(StepKind kind, long step, int full) {
        return words.sequences(kind, step, full);
    }

    @Override
    public int row(StepKind kind, long step, int microBatch, int sequence) {
        return -1; // its inputs are others in every epoch
    }

    @Override
    public boolean isText() {
        return words.isText();
    }

    @Override
    public boolean hasHeldOut() {
        return words.hasHeldOut();
    }

    @Override
    public int heldOutBatches() {
        return words.heldOutBatches();
    }

    @Override
    public long heldOutRows(int batches) {
        return words.heldOutRows(batches);
    }

    @Override
    public long stepsOfEpoch() {
        return words.stepsOfEpoch();
    }

    @Override
    public long trainingTokens() {
        return words.trainingTokens();
    }

    /** Hidden words are predicted from both sides: their loss is no measure of the text's bytes. */
    @Override
    public long heldOutBytes(long sequences) {
        return 0;
    }

    @Override
    public long heldOutTargets(long first, long sequences) {
        long targets = 0;
        long existing = Math.min(first + sequences, words.heldOutRows(words.heldOutBatches()));
        for (long sequence = first; sequence < existing; sequence++) {
            long batch = sequence / spec.sequences();
            Masking.Row choices =
                    masking.row(spec.seed(), StepKind.EVALUATE, batch, sequence % spec.sequences());
            for (int place = 0; place < spec.context(); place++) {
                targets += choices.isChosen(place) ? 1 : 0;
            }
        }
        return targets;
    }

    @Override
    public Optional<CountedTargets> counted() {
        return Optional.empty(); // other targets in every step
    }

    @Override
    public String description() {
        return "%s; %s of the words are hidden"
                .formatted(words.description(), Math.round(1000 * masking.share()) / 10.0 + " %");
    }
}
