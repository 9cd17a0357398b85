package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.cuda.device.Tensor;

/** A boundary tensor that a stage reads, and where its memory goes back to afterwards. */
sealed interface HeldTensor {
    Tensor tensor();

    /** From another rank; it lies in a receive slot of its channel. */
    record Received(Tensor tensor, ChannelKey channel, int slot) implements HeldTensor {}

    /** From the neighbouring stage on this rank; it lies in that stage's pool. */
    record HandedOver(Tensor tensor) implements HeldTensor {}
}
