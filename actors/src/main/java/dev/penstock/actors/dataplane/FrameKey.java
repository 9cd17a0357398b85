package dev.penstock.actors.dataplane;

/**
 * Which tensor this is. Frames are matched by key, never by arrival order.
 *
 * @param step the step that the tensor belongs to (a counter of passes, training and evaluation
 *     alike)
 */
public record FrameKey(ChannelKey channel, long step, int microBatch, int slice) {}
