package dev.penstock.actors.spi;

/** Builds the stages of a run as it begins, and as a recovery wants them. */
public interface StageProgramFactory extends StageBuilder {
    /**
     * Builds the same stages and mirrors without first values of what is trained: the caller gives
     * them that. What is not trained has its first values. May be this one, which only takes
     * longer.
     */
    StageBuilder blank();

    /**
     * Builds the same stages and mirrors as the run's checkpoint after {@code step} has them.
     *
     * @throws RuntimeException there or when building, if that checkpoint cannot be read
     */
    StageBuilder startingAt(long step);
}
