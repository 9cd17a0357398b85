package dev.penstock.schedules.generate;

/**
 * What a kind of schedule can be told beside the shape; a kind ignores what it has no use for.
 *
 * @param backwardOrder for gpipe
 */
public record GenerateOptions(BackwardOrder backwardOrder) {
    /** What a user gets who says nothing. */
    public static GenerateOptions defaults() {
        return new GenerateOptions(BackwardOrder.FIFO);
    }
}
