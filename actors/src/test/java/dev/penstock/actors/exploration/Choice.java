package dev.penstock.actors.exploration;

/**
 * Something that may happen now.
 *
 * @param what it is called in the story of a violation
 * @param of what that names; made to text only then
 */
record Choice(Move move, String what, Object... of) {
    interface Move {
        void happen(ModelWorld world);
    }

    String name() {
        return what.formatted(of);
    }
}
