package dev.penstock.schedules.plan.work;

/**
 * Bytes of training state for one parameter, and of one activation.
 *
 * @param parameter bytes of a parameter in use, p
 * @param gradient bytes of its accumulated gradient, g
 * @param optimizer bytes of everything else: moments, and master weights where {@code parameter} is
 *     not them, o
 * @param activation bytes of a number that goes from layer to layer
 */
public record TrainingBytes(int parameter, int gradient, int optimizer, int activation) {
    /** 16-bit parameters, gradients and activations; fp32 master weights and moments: K = 12. */
    public static final TrainingBytes MIXED = new TrainingBytes(2, 2, 12, 2);

    /** bf16 parameters and activations, gradients accumulated in fp32. */
    public static final TrainingBytes BF16_FP32_GRADIENTS = new TrainingBytes(2, 4, 12, 2);

    /** Everything in fp32: the parameters are the master weights. */
    public static final TrainingBytes FP32 = new TrainingBytes(4, 4, 8, 4);

    public TrainingBytes {
        if (parameter < 1 || gradient < 1 || optimizer < 0 || activation < 1) {
            throw new IllegalArgumentException(
                    "expected bytes of 1 or more, 0 or more for the optimizer, got %d, %d, %d, %d"
                            .formatted(parameter, gradient, optimizer, activation));
        }
    }
}
