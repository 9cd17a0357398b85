package dev.penstock.actors.supervisor;

/** The mean loss over a number of held-out batches, added in the order of batches. */
final class Evaluation {
    private final int batches;
    private int done;
    private double sum;

    Evaluation(int batches) {
        this.batches = batches;
    }

    void add(double loss) {
        sum += loss;
        done++;
    }

    int batchesDone() {
        return done;
    }

    boolean isComplete() {
        return done == batches;
    }

    double meanLoss() {
        return sum / done;
    }
}
