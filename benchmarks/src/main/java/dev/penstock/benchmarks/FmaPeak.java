package dev.penstock.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/** The measured floating-point peak of this machine: chains of FMAs in registers. */
final class FmaPeak {
    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_PREFERRED;
    private static final int CHAINS = 10;
    private static final int ROUNDS = 20_000;
    private static final int REPEATS = 400;

    private FmaPeak() {}

    /**
     * Returns the peak of this many threads together, in F32, with a multiply-add counted as two.
     */
    static double gflops(int threads) {
        try (var pool = Executors.newFixedThreadPool(threads)) {
            List<Future<Double>> rates = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                rates.add(pool.submit(FmaPeak::best));
            }
            double sum = 0;
            for (Future<Double> rate : rates) {
                sum += rate.get();
            }
            return sum;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        } catch (ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    private static double best() {
        double flops = 2.0 * CHAINS * SPECIES.length() * ROUNDS;
        double best = 0;
        float[] sink = new float[SPECIES.length()];
        for (int i = 0; i < REPEATS; i++) {
            long start = System.nanoTime();
            run(sink);
            best = Math.max(best, flops / (System.nanoTime() - start));
        }
        return best;
    }

    private static void run(float[] sink) {
        FloatVector f = FloatVector.broadcast(SPECIES, 0.999f);
        FloatVector a = FloatVector.broadcast(SPECIES, 0.1f);
        FloatVector c0 = f;
        FloatVector c1 = a;
        FloatVector c2 = f.add(a);
        FloatVector c3 = f.sub(a);
        FloatVector c4 = f.mul(a);
        FloatVector c5 = c4.add(f);
        FloatVector c6 = c4.add(a);
        FloatVector c7 = c5.add(f);
        FloatVector c8 = c5.add(a);
        FloatVector c9 = c7.add(f);
        for (int i = 0; i < ROUNDS; i++) {
            c0 = c0.fma(f, a);
            c1 = c1.fma(f, a);
            c2 = c2.fma(f, a);
            c3 = c3.fma(f, a);
            c4 = c4.fma(f, a);
            c5 = c5.fma(f, a);
            c6 = c6.fma(f, a);
            c7 = c7.fma(f, a);
            c8 = c8.fma(f, a);
            c9 = c9.fma(f, a);
        }
        c0.add(c1)
                .add(c2)
                .add(c3)
                .add(c4)
                .add(c5)
                .add(c6)
                .add(c7)
                .add(c8)
                .add(c9)
                .intoArray(sink, 0);
    }
}
