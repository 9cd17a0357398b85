package dev.penstock.actors.supervisor;

import dev.penstock.actors.journal.JournalledRun;

/** How a supervisor comes to a run. */
public sealed interface RunBeginning {
    /** A run that nobody has begun. */
    RunBeginning FIRST = new New(1);

    /**
     * All ranks begin.
     *
     * @param epoch higher than all that earlier starts of the run have had: what is left of them is
     *     refused
     */
    record New(int epoch) implements RunBeginning {}

    /**
     * Another supervisor had it, and is gone; ranks may live.
     *
     * @param asked whether the run's nodes have been asked which ranks they host: then this
     *     supervisor is told which live nowhere, and waits longer for the others to introduce
     *     themselves
     */
    record TakenUp(JournalledRun run, boolean asked) implements RunBeginning {}
}
