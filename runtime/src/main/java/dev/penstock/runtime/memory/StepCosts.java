package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.runtime.links.NominalCosts;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;

/**
 * What a run's ops cost at given rates: FLOPs of computations, forwards that run again among them;
 * bytes of activations on their way to the host and back; bytes of parameters and gradients that
 * are swapped, gathered or summed. Emulated links are in it, others take no time.
 */
final class StepCosts implements CostModel {
    private final MemoryProof proof;
    private final Rates rates;
    private final CostModel computing;

    StepCosts(MemoryProof proof, Rates rates) {
        this.proof = proof;
        this.rates = rates;
        this.computing =
                LinkCosts.of(
                        new NominalCosts(proof.order(), proof.sizes(), rates.flops()),
                        proof.order(),
                        proof.config());
    }

    /** Nanoseconds of a training step: its order simulated, and the update of what is on disk. */
    static long stepNanos(MemoryProof proof, Rates rates) {
        var costs = new StepCosts(proof, rates);
        return ScheduleSimulator.simulate(proof.order(), costs, proof.inFlight()).makespanNanos()
                + costs.updateNanos();
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        return computing.nanos(rank, position, op);
    }

    @Override
    public long latencyNanos(Channel channel) {
        return computing.latencyNanos(channel);
    }

    @Override
    public long occupancyNanos(Channel channel, WorkUnit unit) {
        return computing.occupancyNanos(channel, unit);
    }

    @Override
    public long backgroundNanos(int rank, Op op) {
        RunConfig config = proof.config();
        double ways = config.device().swap().isPresent() ? rates.diskBytes() : rates.hostBytes();
        return computing.backgroundNanos(rank, op)
                + switch (op) {
                    case Op.ActivationOp move ->
                            nanos(unitBytes(move.unit()), rates.activationBytes(config.device()));
                    case Op.GatherParameters(int stage, var layers) -> {
                        var bytes = proof.held().units().gatheredBytes().get(stage);
                        long sum = 0;
                        for (int layer = 0; layer < bytes.size(); layer++) {
                            boolean gathered = layers.first() <= layer && layer <= layers.last();
                            sum += gathered ? bytes.get(layer) : 0;
                        }
                        yield nanos(sum, ways);
                    }
                    case Op.ReduceGradients(int stage) when writesOrSums() ->
                            nanos(parameterBytes(stage), ways);
                    case Op.Compute _,
                            Op.Overlapped _,
                            Op.Transfer _,
                            Op.ReleaseParameters _,
                            Op.ReduceGradients _ ->
                            0;
                };
    }

    private boolean writesOrSums() {
        RunConfig config = proof.config();
        return config.device().swap().isPresent()
                || config.grid().data() * config.grid().context() > 1;
    }

    private long unitBytes(WorkUnit unit) {
        return proof.held().units().activationBytes().get(unit.stage()).get(unit.slice());
    }

    private long parameterBytes(int stage) {
        ModelShape shape = proof.sizes().shape();
        StageRole role = proof.sizes().partition().role(stage);
        long table = (long) shape.vocabulary() * shape.width();
        long positions = (long) shape.addedRows() * shape.width();
        return Float.BYTES
                * (shape.layerParameters(role.firstLayer(), role.layers())
                        + (role.first() ? table + positions : 0)
                        + (role.last() && !(shape.tied() && role.first()) ? table : 0));
    }

    /**
     * Bytes that an update reads and writes, where the rank's parameters are swapped: the
     * parameters with both moments.
     */
    long swappedUpdateBytes() {
        OptimizerState state = proof.config().optimizer().state();
        long bytes = 0;
        for (int stage = 0; stage < proof.order().shape().stages(); stage++) {
            long parameters = parameterBytes(stage);
            bytes += 2 * (parameters + 2 * state.bytes(parameters / Float.BYTES));
        }
        return bytes;
    }

    /** Of the slowest rank. */
    private long updateNanos() {
        RunConfig config = proof.config();
        if (config.device().swap().isPresent()) {
            long bytes = swappedUpdateBytes();
            return nanos(bytes, rates.updateBytes());
        }
        long offloaded =
                proof.held().ranks().stream().mapToLong(plan -> plan.offloaded()).max().orElse(0);
        return nanos(2 * offloaded, rates.diskBytes());
    }

    private static long nanos(long bytes, double bytesPerSecond) {
        return Math.round(1e9 * bytes / bytesPerSecond);
    }
}
