package dev.penstock.actors.collective;

/**
 * What a rank looks at while it waits for other members inside an op, where no order reaches it.
 * The rank's thread only.
 */
public interface RankWaits {
    /** Whether the rank has been ordered out of this epoch: what it waits for will not come. */
    boolean isCalledOff();

    /** Says in stall reports that the rank waits: {@link Collective#describe}. */
    void waitsFor(String what);

    /**
     * Whether something is on its way here that takes its time by plan: such a wait has no limit.
     */
    default boolean isUnderWay() {
        return false;
    }

    /** The wait is over. */
    void goesOn();

    /** In which it waits. */
    default WaitingTime time() {
        return WaitingTime.OF_THREAD;
    }
}
