package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.cuda.device.Tensor;

/** A boundary tensor that a stage reads, and where its memory returns to afterwards. */
sealed interface HeldTensor {
    Tensor tensor();

    /** A tensor from another rank, in a receive slot of its channel. */
    record Received(Tensor tensor, ChannelKey channel, int slot) implements HeldTensor {}

    /** A tensor that came coded from another rank, in memory for what was decoded. */
    record Decoded(Tensor tensor, ChannelKey channel) implements HeldTensor {}

    /** A tensor from the neighbouring stage on this rank, in that stage's pool. */
    record HandedOver(Tensor tensor) implements HeldTensor {}
}
