package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Section {@code batch}: how much one step reads.
 *
 * @param sequences sequences of a step, a multiple of {@code microBatches}
 * @param microBatches parts that follow each other through the pipeline
 * @param lengthStep tokens of which the length of an unequal micro-batch is a multiple
 * @param arrangement the order of unequal micro-batches
 * @param last what becomes of a step for which an epoch, or the data, has too few sequences left
 */
public record BatchSection(
        @Setting(
                        is = "8",
                        range = "[1, 1000000000]",
                        doc = "sequences of a step, a multiple of batch.micro-batches")
                int sequences,
        @Setting(
                        is = "8",
                        range = "[1, 1000000]",
                        doc = "parts of a step that follow each other through the pipeline")
                int microBatches,
        @Setting(
                        is = "16",
                        range = "[1, 1000000]",
                        doc =
                                "data.packing = lengths: tokens of which the length of a"
                                        + " micro-batch is a multiple; with token slices, at least"
                                        + " their number of device.reduction-block")
                int lengthStep,
        @Setting(
                        is = "hill",
                        doc =
                                "data.packing = lengths: micro-batches of a step with the long"
                                        + " ones in the middle (hill), at both ends (valley), last"
                                        + " (rising) or first (falling); simulated: of these, for"
                                        + " each step, that with which the order takes the least"
                                        + " time in the simulator")
                Arrangement arrangement,
        @Setting(
                        is = "full",
                        doc =
                                "an epoch's last step: full goes on with the next epoch, smaller"
                                        + " has the sequences that are left")
                Last last) {

    /** In which order unequal micro-batches go through the pipeline. */
    public enum Arrangement {
        HILL,
        VALLEY,
        RISING,
        FALLING,
        /** That of the others with which the run's order takes the least time in the simulator. */
        SIMULATED
    }

    /** What becomes of a step for which an epoch has too few sequences left. */
    public enum Last {
        /** It takes what it lacks from the next epoch. */
        FULL,
        /** It has fewer; its loss and gradients are means over the tokens that are there. */
        SMALLER
    }

    private static final int USUAL_LENGTH_STEP = 16;

    /** Returns what is said here of lengths and has no effect, for people. */
    List<String> unusedNotes(DataSection.Packing packing, int context) {
        if (packing == DataSection.Packing.LENGTHS) {
            return lengthStep < context
                    ? List.of()
                    : List.of(
                            "batch.length-step = %d has no effect but padding: no row is longer than model.context = %d, so all micro-batches are as long as that; try a divisor of it"
                                    .formatted(lengthStep, context));
        }
        List<String> notes = new ArrayList<>();
        String why =
                "data.packing = %s, and all micro-batches are as long as model.context; try data.packing = lengths"
                        .formatted(packing.word());
        if (lengthStep != USUAL_LENGTH_STEP) {
            notes.add("batch.length-step = %d has no effect: %s".formatted(lengthStep, why));
        }
        if (arrangement != Arrangement.HILL) {
            notes.add(
                    "batch.arrangement = %s has no effect: %s"
                            .formatted(arrangement.name().toLowerCase(Locale.ROOT), why));
        }
        return notes;
    }

    /** Sequences of one micro-batch. */
    public int sequencesPerMicroBatch() {
        return sequences / microBatches;
    }
}
