package dev.penstock.actors.exploration;

/**
 * Something big that copies of a world share until one of them changes it, with its number, which
 * is found once.
 */
final class Shared<T> {
    private T value;
    private boolean alone = true;
    private boolean numbered;
    private long number;
    private long numberedAt;

    Shared(T value) {
        this.value = value;
    }

    /** To be looked at only. */
    T look() {
        return value;
    }

    /** To be changed. */
    T change() {
        if (!alone) {
            value = ObjectGraph.copy(value);
            alone = true;
        }
        numbered = false;
        return value;
    }

    /** For another world. */
    Shared<T> copy() {
        var copy = new Shared<>(value);
        copy.numbered = numbered;
        copy.number = number;
        copy.numberedAt = numberedAt;
        copy.alone = false;
        alone = false;
        return copy;
    }

    long number(long now) {
        if (!numbered || numberedAt != now) {
            number = ObjectGraph.numberOf(value, now);
            numberedAt = now;
            numbered = true;
        }
        return number;
    }
}
