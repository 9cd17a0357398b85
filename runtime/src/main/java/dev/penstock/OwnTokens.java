package dev.penstock;

import dev.penstock.runtime.data.GivenTokens;

/** A program's tokens for those who read data. */
record OwnTokens(TokenSource source, String identity, long size) implements GivenTokens {
    /** They are asked once for what must not change while they are used. */
    static OwnTokens of(TokenSource source) {
        return new OwnTokens(source, source.identity().strip(), source.size());
    }

    @Override
    public void read(long first, int[] target, int offset, int count) {
        source.read(first, target, offset, count);
    }
}
