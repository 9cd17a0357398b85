package dev.penstock.schedules.plan.work;

/**
 * What a plan is wanted for.
 *
 * @param batch sequences of a step, over all replicas
 */
public record PlanRequest(ModelShape model, TrainingBytes bytes, Hardware cluster, int batch) {
    public PlanRequest {
        if (batch < 1) {
            throw new IllegalArgumentException("a batch has 1 sequence or more, got " + batch);
        }
    }
}
