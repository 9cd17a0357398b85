package dev.penstock.actors.exploration;

/**
 * What may go wrong from here on.
 *
 * @param losses of messages
 * @param deaths of processes
 * @param takeOvers by another supervisor
 * @param lostRecords at the end of the journal that a take-over finds
 */
record Faults(int losses, int deaths, int takeOvers, int lostRecords) {
    boolean areOver() {
        return losses == 0 && deaths == 0 && takeOvers == 0;
    }

    Faults afterALoss() {
        return new Faults(losses - 1, deaths, takeOvers, lostRecords);
    }

    Faults afterADeath() {
        return new Faults(losses, deaths - 1, takeOvers, lostRecords);
    }

    Faults afterATakeOver() {
        return new Faults(losses, deaths, takeOvers - 1, 0);
    }
}
