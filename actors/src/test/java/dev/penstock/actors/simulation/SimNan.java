package dev.penstock.actors.simulation;

/** A number that is not finite, in the forward of a rank. */
final class SimNan {
    private final int rank;
    private final long step;
    private final boolean always;
    private boolean struck;

    /** Of the scenario's step; it strikes again where the step would be left out again. */
    SimNan(Scenario scenario) {
        this.rank = scenario.nanStep() % scenario.grid().ranks();
        this.step = scenario.nanStep();
        this.always = scenario.skips();
    }

    boolean strikes(int atRank, long atStep) {
        boolean now = atRank == rank && atStep == step && (always || !struck);
        struck |= now;
        return now;
    }

    long step() {
        return step;
    }

    boolean hasStruck() {
        return struck;
    }
}
