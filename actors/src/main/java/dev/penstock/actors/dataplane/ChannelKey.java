package dev.penstock.actors.dataplane;

/**
 * A direction of tensors into a stage; credits are counted per channel.
 *
 * @param stage the receiving stage
 * @param fromStage the sending stage
 */
public record ChannelKey(FrameKind kind, int fromStage, int stage) {}
