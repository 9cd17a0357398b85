package dev.penstock;

/**
 * What a checkpoint has learned of what its run held out.
 *
 * @param step of the checkpoint
 * @param tokens whose loss was measured
 * @param loss mean over them, in nats
 * @param perplexity e to the loss
 * @param measuredOn the identity of the tokens that a program gave, else the run's {@code
 *     data.source}
 */
public record HeldOut(long step, long tokens, double loss, double perplexity, String measuredOn) {}
