package dev.penstock.actors.supervisor;

/** The mean loss over the tokens of a number of held-out batches, added in the order of batches. */
final class Evaluation {
    private final int batches;
    private int done;
    private final double lastShare;
    private double sum;
    private double weight;

    /**
     * @param lastShare what the last batch has of a full one
     */
    Evaluation(int batches, double lastShare) {
        this.batches = batches;
        this.lastShare = lastShare;
    }

    void add(double loss) {
        done++;
        double share = isComplete() ? lastShare : 1;
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
