package dev.penstock.runtime.cli;

import dev.penstock.schedules.render.GridColors;
import java.util.Map;

/** What is known of the place where output goes. */
final class Terminal {
    private Terminal() {}

    /** Whether a person sees the output as it comes. */
    static boolean isTerminal() {
        return System.console() != null && System.console().isTerminal();
    }

    /** How a grid on the standard output is coloured. */
    static GridColors gridColors() {
        return gridColors(isTerminal(), System.getenv());
    }

    /**
     * Colour only for a person who did not refuse it (https://no-color.org) and whose terminal can
     * show it.
     */
    static GridColors gridColors(boolean terminal, Map<String, String> environment) {
        boolean refused = !environment.getOrDefault("NO_COLOR", "").isEmpty();
        boolean dumb = environment.getOrDefault("TERM", "dumb").equals("dumb");
        return terminal && !refused && !dumb ? GridColors.ANSI : GridColors.NONE;
    }
}
