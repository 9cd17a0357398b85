package dev.penstock.actors.rank;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.cuda.device.Kernels;

/**
 * The sum of a gradient whose two sharers live on one rank. It is taken when the second of them
 * reaches its reduction, because by then both are complete.
 */
final class LocalGradientSum implements GradientExchange {
    private final SharedGradient first;
    private final SharedGradient second;
    private final Kernels kernels;
    private int arrived;

    /**
     * @param first the gradient on the lower stage
     */
    LocalGradientSum(SharedGradient first, SharedGradient second, Kernels kernels) {
        this.first = first;
        this.second = second;
        this.kernels = kernels;
    }

    @Override
    public void begin() {
        arrived = 0;
    }

    @Override
    public Progress advance(Endpoint endpoint, long pass) {
        arrived++;
        if (arrived == 2) {
            kernels.add(second.gradient(), first.gradient());
            kernels.copy(first.gradient(), second.gradient());
        }
        return Progress.DONE;
    }
}
