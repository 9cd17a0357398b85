package dev.penstock.actors.supervisor;

import java.util.List;
import java.util.OptionalDouble;

/**
 * The mean loss, and accuracy where there is one, over the targets that count of a number of
 * held-out batches, added in the order of batches.
 */
final class Evaluation {
    private final int batches;
    private int done;
    private final List<Double> lastShares;
    private double sum;
    private double weight;
    private OptionalDouble right = OptionalDouble.empty();

    /**
     * @param lastShares what the last batches count of a full one; those before are full
     */
    Evaluation(int batches, List<Double> lastShares) {
        this.batches = batches;
        this.lastShares = lastShares;
    }

    /**
     * @param accuracy empty unless the model classifies
     */
    void add(double loss, OptionalDouble accuracy) {
        int ofLast = lastShares.size() - (batches - done);
        double share = ofLast < 0 ? 1 : lastShares.get(ofLast);
        done++;
        sum += share * loss;
        weight += share;
        accuracy.ifPresent(a -> right = OptionalDouble.of(right.orElse(0) + share * a));
    }

    int batchesDone() {
        return done;
    }

    boolean isComplete() {
        return done == batches;
    }

    double meanLoss() {
        return sum / weight;
    }

    OptionalDouble meanAccuracy() {
        return right.isEmpty() ? right : OptionalDouble.of(right.getAsDouble() / weight);
    }
}
