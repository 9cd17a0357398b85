package dev.penstock.runtime.cli.command;

import dev.penstock.schedules.render.GridColors;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** What is known of the place where output goes. */
public final class Terminal {
    private Terminal() {}

    /** Whether a person sees the output as it comes. */
    static boolean isTerminal() {
        return System.console() != null && System.console().isTerminal();
    }

    /** Whether what is there can be drawn over: a dumb terminal is written to line by line. */
    public static boolean canDraw() {
        return canDraw(isTerminal(), System.getenv());
    }

    /** Returns what can be drawn on, if there is such a thing. */
    public static Optional<PrintStream> screen() {
        return canDraw() ? Optional.of(System.out) : Optional.empty();
    }

    public static boolean canDraw(boolean terminal, Map<String, String> environment) {
        return terminal && !environment.getOrDefault("TERM", "dumb").equals("dumb");
    }

    /** What a terminal shows at a time. */
    public record Size(int columns, int rows) {
        /** Of a terminal that does not say. */
        static final Size USUAL = new Size(80, 24);

        /** Of {@code rows columns}, as stty says it. */
        static Size of(String said) {
            String[] numbers = said.strip().split(" ", -1);
            if (numbers.length != 2 || !said.strip().matches("[1-9]\\d{0,4} [1-9]\\d{0,4}")) {
                return USUAL;
            }
            return new Size(Integer.parseInt(numbers[1]), Integer.parseInt(numbers[0]));
        }
    }

    /** Asks the terminal, which may have another size now than before. */
    public static Size size() throws InterruptedException {
        try {
            Process stty =
                    new ProcessBuilder("stty", "size")
                            .redirectInput(new File("/dev/tty"))
                            .redirectError(ProcessBuilder.Redirect.DISCARD)
                            .start();
            boolean ended = stty.waitFor(1, TimeUnit.SECONDS);
            if (!ended) {
                stty.destroyForcibly();
                return Size.USUAL;
            }
            return Size.of(
                    new String(stty.getInputStream().readAllBytes(), StandardCharsets.US_ASCII));
        } catch (IOException e) {
            return Size.USUAL; // no stty here
        }
    }

    /** How a grid on the standard output is coloured. */
    public static GridColors gridColors() {
        return gridColors(isTerminal(), System.getenv());
    }

    /**
     * Colour only for a person who did not refuse it (https://no-color.org) and whose terminal can
     * show it.
     */
    public static GridColors gridColors(boolean terminal, Map<String, String> environment) {
        boolean refused = !environment.getOrDefault("NO_COLOR", "").isEmpty();
        return canDraw(terminal, environment) && !refused ? GridColors.ANSI : GridColors.NONE;
    }
}
