package dev.penstock.schedules.ir;

/** One thing wrong with a schedule's text. */
public record TextProblem(TextPosition position, String message) {
    @Override
    public String toString() {
        return "line %d, column %d: %s".formatted(position.line(), position.column(), message);
    }
}
