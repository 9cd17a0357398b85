package dev.penstock.actors.simulation;

/**
 * A number that is not finite, in the forward of a rank; where replicas do each other's work, in
 * that of a micro-batch, whoever has it.
 */
final class SimNan {
    private final int victim;
    private final long step;
    private final boolean always;
    private boolean struck;

    /** Of the scenario's step; it strikes again where the step would be left out again. */
    SimNan(Scenario scenario) {
        int among =
                scenario.wired()
                        ? Scenario.MICRO_BATCHES * scenario.grid().data()
                        : scenario.grid().ranks();
        this.victim = scenario.nanStep() % among;
        this.step = scenario.nanStep();
        this.always = scenario.skips();
    }

    boolean strikes(int who, long atStep) {
        boolean now = who == victim && atStep == step && (always || !struck);
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
