package dev.penstock.actors.exploration;

/**
 * Something that may happen now.
 *
 * @param wrong whether it is a fault
 * @param what it is called in the story of a violation
 * @param of what that names; made to text only then
 */
record Choice(boolean wrong, Move move, String what, Object... of) {
    interface Move {
        void happen(ModelWorld world);
    }

    static Choice step(Move move, String what, Object... of) {
        return new Choice(false, move, what, of);
    }

    static Choice mishap(Move move, String what, Object... of) {
        return new Choice(true, move, what, of);
    }

    @Override
    public String toString() {
        return name();
    }

    String name() {
        return what.formatted(of);
    }
}
