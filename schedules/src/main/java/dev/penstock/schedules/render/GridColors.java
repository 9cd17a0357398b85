package dev.penstock.schedules.render;

/** How the cells of a text grid tell kinds of op apart, beside their letters. */
public enum GridColors {
    /** By letters alone: for files and for those who want no colour. */
    NONE {
        @Override
        String paint(OpClass kind, String text) {
            return text;
        }
    },
    /** By ANSI escape codes of 256 colours, which a terminal does not print. */
    ANSI {
        @Override
        String paint(OpClass kind, String text) {
            return "\u001b[" + code(kind) + "m" + text + "\u001b[0m";
        }
    };

    /** The text in the colour of its kind. */
    abstract String paint(OpClass kind, String text);

    /**
     * Near the colours of Okabe and Ito, of a middle brightness that is read on black and on white;
     * what may stand side by side in one schedule also differs by bold or reversed letters.
     */
    private static String code(OpClass kind) {
        return switch (kind) {
            case FORWARD -> "38;5;33";
            case BACKWARD -> "1;38;5;172";
            case BACKWARD_INPUT -> "38;5;166";
            case BACKWARD_WEIGHT -> "38;5;142";
            case OVERLAPPED -> "7;38;5;67";
            case RECOMPUTE -> "4;38;5;33";
            case SEND -> "38;5;35";
            case RECEIVE -> "38;5;74";
            case OFFLOAD -> "38;5;65";
            case RELOAD -> "4;38;5;65";
            case GATHER, RELEASE -> "38;5;97";
            case REDUCE -> "38;5;169";
        };
    }
}
