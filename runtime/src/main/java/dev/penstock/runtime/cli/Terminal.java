package dev.penstock.runtime.cli;

/** What is known of the place where output goes. */
final class Terminal {
    private Terminal() {}

    /** Whether a person sees the output as it comes. */
    static boolean isTerminal() {
        return System.console() != null && System.console().isTerminal();
    }
}
