package dev.penstock.runtime.data;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * A long row of tokens, kept as small as the vocabulary allows: one, two or four bytes each, on the
 * heap in pieces of 1 Mi tokens (so a gigabyte of bytes takes a gigabyte of heap, nothing more, and
 * the heap is the only limit). Filled by one thread, then read by any.
 */
final class Tokens implements TokenRow {
    private static final int PIECE_BITS = 20;
    private static final int PIECE = 1 << PIECE_BITS;
    private static final VarHandle CHAR =
            MethodHandles.byteArrayViewVarHandle(char[].class, ByteOrder.nativeOrder());
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.nativeOrder());

    private final int bytesPerToken;
    private final List<byte[]> pieces = new ArrayList<>();
    private long size;

    Tokens(int vocabulary) {
        bytesPerToken = vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4;
    }

    @Override
    public long size() {
        return size;
    }

    /** Appends a token, which must be below the vocabulary. */
    void add(int token) {
        int at = (int) (size & (PIECE - 1));
        if (at == 0) {
            pieces.add(new byte[PIECE * bytesPerToken]);
        }
        byte[] piece = pieces.getLast();
        switch (bytesPerToken) {
            case 1 -> piece[at] = (byte) token;
            case 2 -> CHAR.set(piece, at * 2, (char) token);
            default -> INT.set(piece, at * 4, token);
        }
        size++;
    }

    @Override
    public int get(long index) {
        byte[] piece = pieces.get((int) (index >>> PIECE_BITS));
        int at = (int) (index & (PIECE - 1));
        return switch (bytesPerToken) {
            case 1 -> Byte.toUnsignedInt(piece[at]);
            case 2 -> (char) CHAR.get(piece, at * 2);
            default -> (int) INT.get(piece, at * 4);
        };
    }
}
