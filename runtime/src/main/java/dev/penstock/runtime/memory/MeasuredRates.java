package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.links.NominalCosts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.ProfileCosts;
import java.util.function.Function;

/** The rates that a run measured. */
public final class MeasuredRates {
    private MeasuredRates() {}

    /**
     * Returns the rates of a finished run. Of what it did not do the usual rate holds.
     *
     * @param loaded the run's configuration
     * @param profile that it left behind
     * @param usual of this machine
     * @throws IllegalArgumentException if the profile lacks computations of the run's order
     */
    public static Rates of(
            LoadedConfig loaded,
            ProfileCosts profile,
            Function<LoadedConfig, MemoryProof> prover,
            Rates usual) {
        MemoryProof proof = prover.apply(loaded);
        var nominal = new NominalCosts(proof.order(), proof.sizes(), usual.flops());
        double took = 0;
        double expected = 0;
        double moved = 0;
        double moving = 0;
        for (RankProgram program : proof.order().programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                if (!op.computations().isEmpty()) {
                    took += profile.computing().nanos(program.rank(), i, op);
                    expected += nominal.nanos(program.rank(), i, op);
                }
                if (op instanceof Op.ActivationOp move) {
                    WorkUnit unit = move.unit();
                    moving += profile.backgroundNanos(program.rank(), op);
                    moved +=
                            proof.held()
                                    .units()
                                    .activationBytes()
                                    .get(unit.stage())
                                    .get(unit.slice());
                }
            }
        }
        double flops = usual.flops() * expected / took;
        double bytes = moving == 0 ? usual.hostBytes() : 1e9 * moved / moving;
        return new Rates(flops, bytes, usual.diskBytes());
    }
}
