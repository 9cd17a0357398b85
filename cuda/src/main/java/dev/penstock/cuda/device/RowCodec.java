package dev.penstock.cuda.device;

/**
 * A form in which rows of floats travel in fewer bits. A row is coded by itself, so that parts of a
 * tensor, cut between rows, have the bits of the whole. Coded rows are I32 words.
 */
public sealed interface RowCodec permits WireCodec, TopK {
    /** Words of a coded row of so many elements. */
    int words(int columns);
}
