package dev.penstock.runtime.launch;

import sun.misc.Signal;
import sun.misc.SignalHandler;

/**
 * Ctrl-C and SIGTERM: the first asks the run to finish its step, save and end; the second ends the
 * process at once.
 */
public final class Interrupts {
    private static final int INTERRUPTED = 130;

    private Runnable action = () -> {};
    private boolean asked;

    Interrupts() {}

    /** Takes over both signals of this process. */
    public static Interrupts install() {
        var interrupts = new Interrupts();
        SignalHandler handler = _ -> interrupts.onSignal();
        Signal.handle(new Signal("INT"), handler);
        Signal.handle(new Signal("TERM"), handler);
        return interrupts;
    }

    /**
     * Leaves both signals to the parent process: a terminal, a time limit or a service sends them
     * to all.
     */
    public static void leaveToParent() {
        Signal.handle(new Signal("INT"), SignalHandler.SIG_IGN);
        Signal.handle(new Signal("TERM"), SignalHandler.SIG_IGN);
        outliveTerminal();
    }

    /** A terminal that is closed ends every process that does not refuse it; a run goes on. */
    public static void outliveTerminal() {
        Signal.handle(new Signal("HUP"), SignalHandler.SIG_IGN);
    }

    /** What the first signal does; done at once if that signal has already come. */
    public synchronized void onInterrupt(Runnable newAction) {
        action = newAction;
        if (asked) {
            newAction.run();
        }
    }

    synchronized void onSignal() {
        if (asked) {
            Runtime.getRuntime().exit(INTERRUPTED);
        }
        asked = true;
        action.run();
    }
}
