package dev.penstock.actors.collective;

/** One that its group moves on together with the others that are under way. */
public interface SteppedCollective extends Collective {
    /** Does what can be done now; whether all is done. */
    boolean step();
}
