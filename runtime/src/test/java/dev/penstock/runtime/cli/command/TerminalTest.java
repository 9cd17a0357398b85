package dev.penstock.runtime.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.render.GridColors;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TerminalTest {
    @Test
    void gridsAreColouredOnATerminalOnly() {
        Map<String, String> environment = Map.of("TERM", "xterm-256color");

        assertThat(Terminal.gridColors(true, environment)).isEqualTo(GridColors.ANSI);
        assertThat(Terminal.gridColors(false, environment)).isEqualTo(GridColors.NONE);
    }

    @Test
    void colourCanBeRefused() {
        assertThat(Terminal.gridColors(true, Map.of("TERM", "xterm", "NO_COLOR", "1")))
                .isEqualTo(GridColors.NONE);
        assertThat(Terminal.gridColors(true, Map.of("TERM", "xterm", "NO_COLOR", "")))
                .as("an empty value refuses nothing")
                .isEqualTo(GridColors.ANSI);
    }

    @Test
    void aTerminalThatCannotShowColourGetsNone() {
        assertThat(Terminal.gridColors(true, Map.of("TERM", "dumb"))).isEqualTo(GridColors.NONE);
        assertThat(Terminal.gridColors(true, Map.of())).isEqualTo(GridColors.NONE);
    }

    @Test
    void onADumbTerminalNothingIsDrawnOver() {
        assertThat(Terminal.canDraw(true, Map.of("TERM", "xterm"))).isTrue();
        assertThat(Terminal.canDraw(false, Map.of("TERM", "xterm"))).isFalse();
        assertThat(Terminal.canDraw(true, Map.of("TERM", "dumb"))).isFalse();
        assertThat(Terminal.canDraw(true, Map.of())).isFalse();
    }

    @Test
    void aTerminalThatDoesNotSayItsSizeHasTheUsualOne() {
        assertThat(Terminal.Size.of("50 132\n")).isEqualTo(new Terminal.Size(132, 50));
        for (String said : List.of("", "0 0", "24", "24 80 1", "rows columns")) {
            assertThat(Terminal.Size.of(said)).isEqualTo(Terminal.Size.USUAL);
        }
    }
}
