package dev.penstock.cuda.device;

/**
 * The numbers of one AdamW update.
 *
 * @param t update count, from 1
 * @param decay decoupled weight decay of the parameter, 0 for none
 * @param gradientScale factor on the gradient before use (the clip factor)
 */
public record AdamWStep(
        long t,
        double learningRate,
        double beta1,
        double beta2,
        double epsilon,
        double decay,
        double gradientScale) {

    /** The same update of a parameter that does not decay. */
    public AdamWStep withoutDecay() {
        return new AdamWStep(t, learningRate, beta1, beta2, epsilon, 0, gradientScale);
    }
}
