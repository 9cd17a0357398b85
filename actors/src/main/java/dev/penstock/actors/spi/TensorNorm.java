package dev.penstock.actors.spi;

/**
 * The squared norm of one parameter's gradient, in double precision over fixed blocks.
 *
 * @param squaredNorm not finite if and only if an element is not finite
 */
public record TensorNorm(String parameter, double squaredNorm) {}
