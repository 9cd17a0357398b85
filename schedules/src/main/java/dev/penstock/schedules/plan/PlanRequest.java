package dev.penstock.schedules.plan;

/**
 * What a plan is wanted for.
 *
 * @param batch sequences of a step, over all replicas
 */
public record PlanRequest(ModelShape model, TrainingBytes bytes, Cluster cluster, int batch) {
    public PlanRequest {
        if (batch < 1) {
            throw new IllegalArgumentException("a batch has 1 sequence or more, got " + batch);
        }
    }
}
