package dev.penstock.runtime.model.shape;

/**
 * An update that was committed: files that are one step older follow from their gradients and this.
 *
 * @param clipFactor by which every gradient of the step is multiplied
 */
public record SwapCommit(long step, double clipFactor) {}
