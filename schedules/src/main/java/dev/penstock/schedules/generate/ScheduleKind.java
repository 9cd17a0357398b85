package dev.penstock.schedules.generate;

/**
 * A kind of schedule and the shapes that it is made for.
 *
 * @param name as configurations and the command line write it
 * @param chunks how many stages a rank holds
 * @param sliced whether sequences may be cut into token slices
 */
public record ScheduleKind(String name, Chunks chunks, boolean sliced) {
    /** A rule for the number of stages per rank. */
    public enum Chunks {
        /** The plain pipeline. */
        ONE,
        /** V placement: a rank holds one stage of the way down and one of the way up. */
        TWO,
        /** Any number in loop placement; one is the plain pipeline. */
        ANY;

        /** Whether a rank may hold so many stages. */
        public boolean allow(int chunks) {
            return switch (this) {
                case ONE -> chunks == 1;
                case TWO -> chunks == 2;
                case ANY -> chunks >= 1;
            };
        }
    }
}
