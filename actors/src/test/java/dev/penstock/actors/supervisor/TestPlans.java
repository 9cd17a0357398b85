package dev.penstock.actors.supervisor;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;

/** Bare pipelines, for tests that look at other things. */
public final class TestPlans {
    private TestPlans() {}

    /** A pipeline of one stage on each rank, nine steps long. */
    public static RunPlan chain(int ranks) {
        ChainPipeline pipeline = pipeline(ranks);
        pipeline.runSteps = new RunSteps(0, 9, 0, 0, 0, 0);
        return pipeline.plan();
    }

    /**
     * A pipeline several times over; all have all of their ranks' state, and are each other's
     * mirrors.
     */
    public static RunPlan replicas(int stages, int replicas) {
        RunPlan one = chain(stages);
        return new RunPlan(
                one.runId(),
                one.hash(),
                one.training(),
                one.evaluation(),
                new RankGrid(stages, 1, 1, replicas),
                one.inFlight(),
                one.steps(),
                one.timeouts(),
                true,
                true,
                CollectiveForm.NEVER);
    }

    /** Where a run saves that ends before it does. */
    public static CheckpointStore unusedCheckpoints() {
        return pipeline(2);
    }

    private static ChainPipeline pipeline(int ranks) {
        return new ChainPipeline("1f1b", new ChainStage.Settings(ranks, 2, 1, false, 0.01));
    }
}
