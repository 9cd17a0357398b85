package dev.penstock.runtime.dashboard;

import dev.penstock.runtime.events.RunEvent;

/** Whether a run is well, in a word or two; the last trouble counts. Not thread-safe. */
final class Health {
    private static final String GOOD = "good";

    /** A straggler is told again only when it was well in between; so long it is on the page. */
    private static final long STRAGGLER_STEPS = 100;

    private boolean recovering;
    private boolean changesPlan;
    private boolean stalled;
    private boolean unsaved;
    private boolean leftOut;
    private long slowUntil = -1;

    boolean isRecovering() {
        return recovering;
    }

    /** {@code step}: the last committed one. */
    String told(long step) {
        if (recovering) {
            return changesPlan ? "changing its plan" : "recovering";
        }
        if (stalled) {
            return "stalled";
        }
        if (unsaved) {
            return "last checkpoint failed";
        }
        if (step < slowUntil) {
            return "slow rank";
        }
        return leftOut ? "log has gaps" : GOOD;
    }

    void on(RunEvent.Noted noted, long step) {
        switch (noted.kind()) {
            case RECOVERING -> {
                changesPlan &= !recovering; // a death meanwhile is a death
                recovering = true;
            }
            case STALL -> stalled = true;
            case SAVE_FAILED -> unsaved = true;
            case STRAGGLER -> slowUntil = step + STRAGGLER_STEPS;
            case LEFT_OUT -> leftOut = true;
            case PLAN, OVERFLOW -> {}
        }
    }

    /** The run follows another plan: of its own accord, unless it is recovering. */
    void revised() {
        changesPlan = !recovering;
    }

    void stepped() {
        stalled = false;
    }

    void saved() {
        unsaved = false;
    }

    void verified(boolean whole) {
        unsaved |= !whole;
    }

    /** The run came back, began again or ended. */
    void settled() {
        recovering = false;
        changesPlan = false;
        stalled = false;
        slowUntil = -1;
    }
}
