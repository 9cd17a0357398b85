package dev.penstock.actors.collective;

/**
 * One sum or gather that a rank has begun. The tensor that it works on belongs to it until it is
 * done. The rank's thread only.
 */
public interface Collective {
    /**
     * Does what can be done now; never blocks.
     *
     * @return whether all of it is done
     */
    boolean advance();

    /**
     * What it waits for, for stall reports: {@code all-reduce 12 of ranks [0, 1]: part of rank 1}.
     */
    String describe();
}
