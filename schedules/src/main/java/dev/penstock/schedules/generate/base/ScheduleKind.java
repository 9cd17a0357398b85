package dev.penstock.schedules.generate.base;

/**
 * A kind of schedule and the shapes that it is made for.
 *
 * @param name as configurations and the command line write it
 * @param chunks how many stages a rank holds
 * @param sliced whether sequences may be cut into token slices
 * @param search what its order depends on beside the shape
 */
public record ScheduleKind(String name, Chunks chunks, boolean sliced, Search search) {
    /** Whether an order is worked out for given costs. */
    public enum Search {
        /** It is a rule. */
        NONE,
        /** It is searched for the costs of ops. */
        COSTS,
        /** It is searched for the costs of ops, within what a rank may hold. */
        COSTS_AND_MEMORY;

        /** Whether {@link GenerateOptions#costs} say something to it. */
        public boolean usesCosts() {
            return this != NONE;
        }

        /** Whether {@link GenerateOptions#memoryLimit} says something to it. */
        public boolean usesMemoryLimit() {
            return this == COSTS_AND_MEMORY;
        }
    }

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
