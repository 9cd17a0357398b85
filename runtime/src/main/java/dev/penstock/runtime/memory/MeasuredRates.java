package dev.penstock.runtime.memory;

import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.links.NominalCosts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.simulate.ProfileCosts;
import java.util.OptionalLong;
import java.util.function.Function;

/** The rates that a run measured: of computing, of copies to its host or folder, of swapping. */
public final class MeasuredRates {
    private MeasuredRates() {}

    /**
     * Returns the rates of a finished run; of ways that it did not take, the usual ones.
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
        RunConfig config = proof.config();
        boolean swapped = config.device().swap().isPresent();
        var nominal = new NominalCosts(proof.order(), proof.sizes(), usual.flops());
        var usually = new StepCosts(proof, usual);
        double took = 0;
        double expected = 0;
        var copies = new Way();
        var loads = new Way();
        for (RankProgram program : proof.order().programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                if (!op.computations().isEmpty()) {
                    took += profile.computing().nanos(program.rank(), i, op);
                    expected += nominal.nanos(program.rank(), i, op);
                } else if (op instanceof Op.ActivationOp) {
                    copies.add(profile, usually, program.rank(), op);
                } else if (op instanceof Op.GatherParameters && swapped) {
                    loads.add(profile, usually, program.rank(), op);
                }
            }
        }
        double diskBytes = usual.diskBytes() * loads.faster();
        OptionalLong update = profile.updateNanos();
        return new Rates(
                usual.flops() * expected / took,
                copies.took == 0
                        ? usual.hostBytes()
                        : usual.activationBytes(config.device()) * copies.faster(),
                diskBytes,
                swapped && update.orElse(0) > 0
                        ? 1e9 * usually.swappedUpdateBytes() / update.getAsLong()
                        : diskBytes);
    }

    /** What moves on one way, usually and in the run. */
    private static final class Way {
        private double took;
        private double usually;

        void add(ProfileCosts profile, StepCosts usual, int rank, Op op) {
            took += profile.backgroundNanos(rank, op);
            usually += usual.backgroundNanos(rank, op);
        }

        /** How much faster than usual it was; 1 where nothing was measured. */
        double faster() {
            return took == 0 ? 1 : usually / took;
        }
    }
}
