package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;

/** Turns heads of queries and keys by the places of their tokens. */
public interface HeadTurns {
    /**
     * Turns rows in place.
     *
     * @param queriesAndKeys of a unit, or of one of its sequences
     * @param blocks of the unit
     * @param back by the opposite angles, as gradients turn
     */
    void turn(Tensor queriesAndKeys, TokenBlocks blocks, boolean back);
}
