package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.links.NominalCosts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.simulate.ProfileCosts;
import java.util.function.Function;

/** The rate of computing that a run measured. */
public final class MeasuredRates {
    private MeasuredRates() {}

    /**
     * Returns the rate of computing of a finished run, with the usual rates of ways.
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
        for (RankProgram program : proof.order().programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                if (!op.computations().isEmpty()) {
                    took += profile.computing().nanos(program.rank(), i, op);
                    expected += nominal.nanos(program.rank(), i, op);
                }
            }
        }
        return new Rates(usual.flops() * expected / took, usual.hostBytes(), usual.diskBytes());
    }
}
