package dev.penstock.schedules.simulate.churn;

/**
 * How peers come and go: both at random, one independent of the other (Poisson), at the same rate,
 * so that as many are there on average as at the start.
 *
 * @param stages stages of the pipeline, at least 1
 * @param peers peers at the start, at least one for each stage
 * @param meanLifeSeconds how long a peer lives on average; a preemption comes every {@code
 *     meanLifeSeconds / peers} seconds on average, and so does a join
 * @param seconds how long the trace is
 */
public record Churn(int stages, int peers, double meanLifeSeconds, double seconds) {
    public Churn {
        if (stages < 1 || peers < stages || !(meanLifeSeconds > 0) || !(seconds > 0)) {
            throw new IllegalArgumentException(
                    "expected 1 stage or more, a peer for each, and times above 0, got %d stages, %d peers, %s s of life, %s s"
                            .formatted(stages, peers, meanLifeSeconds, seconds));
        }
    }
}
