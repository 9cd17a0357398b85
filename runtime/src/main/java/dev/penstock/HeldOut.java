package dev.penstock;

/**
 * What a checkpoint has learned of what its run held out.
 *
 * @param step of the checkpoint
 * @param tokens whose loss was measured
 * @param loss mean over them, in nats
 * @param perplexity e to the loss
 */
public record HeldOut(long step, long tokens, double loss, double perplexity) {}
