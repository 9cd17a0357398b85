package dev.penstock.actors.supervisor;

import java.util.List;

/**
 * The mean loss over the targets that count of a number of held-out batches, added in the order of
 * batches.
 */
final class Evaluation {
    private final int batches;
    private int done;
    private final List<Double> lastShares;
    private double sum;
    private double weight;

    /**
     * @param lastShares what the last batches count of a full one; those before are full
     */
    Evaluation(int batches, List<Double> lastShares) {
        this.batches = batches;
        this.lastShares = lastShares;
    }

    void add(double loss) {
        int ofLast = lastShares.size() - (batches - done);
        double share = ofLast < 0 ? 1 : lastShares.get(ofLast);
        done++;
        sum += share * loss;
        weight += share;
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
}
