package dev.penstock.benchmarks;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.plan.swap.SwapPart;
import dev.penstock.schedules.plan.swap.SwapStep;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import dev.penstock.schedules.simulate.UnitCosts.Kind;
import java.io.PrintStream;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * Swapping through one host in simulation, in milliseconds of equal blocks: how many micro-batches
 * hide the loads, and four swapping replicas against a pipeline of four stages over slow links
 * (ATOM, arXiv 2403.10504, section 5).
 *
 * <p>Blocks of a model of width 2,048 with 1,024 tokens a micro-batch on a rank of 10 TFLOP/s whose
 * host gives 3 GB/s; activations travel in F32.
 */
public final class SwapBenchmark {
    private static final int BLOCKS = 24;
    private static final int RANKS = 4;
    private static final int MICRO_BATCHES = 64;
    private static final long WIDTH = 2048;
    private static final long TOKENS = 1024;
    private static final double FLOPS_PER_MS = 10e9;
    private static final double BYTES_PER_MS = 3e6;
    private static final long LATENCY_MS = 50;
    private static final double PARAMETERS = 12.0 * WIDTH * WIDTH;
    private static final double ACTIVATION_BITS = 32.0 * WIDTH * TOKENS;

    /** In microseconds. */
    private static final long FORWARD = Math.round(2000 * PARAMETERS * TOKENS / FLOPS_PER_MS);

    private static final long LOAD = Math.round(4000 * PARAMETERS / BYTES_PER_MS);

    private SwapBenchmark() {}

    public static void main(String[] arguments) {
        PrintStream out = System.out;
        out.printf(
                "blocks: forward %.1f ms, load %.1f ms; enough by the formula: %d%n%n",
                FORWARD / 1e3, LOAD / 1e3, SwapStep.enough(Collections.nCopies(BLOCKS, block())));
        out.printf("%3s %14s %14s %12s%n", "C", "simulated ms", "formula ms", "of resident");
        for (int c = 1; c <= 16; c++) {
            long simulated = swapped(c);
            double formula = new SwapStep(c).time(Collections.nCopies(BLOCKS, block()));
            double share = 3.0 * c * BLOCKS * FORWARD / simulated;
            out.printf(
                    "%3d %14.1f %14.1f %10.1f %%%n",
                    c, simulated / 1e3, formula / 1e3, 100 * share);
        }
        out.printf(
                "%n%d micro-batches, latency %d ms%n%12s %14s %16s %22s%n",
                MICRO_BATCHES,
                LATENCY_MS,
                "Mbit/s",
                "pipeline ms",
                "swapped, alone",
                "ratio; sums every step");
        for (int megabits : List.of(1000, 400, 100, 10)) {
            long pipeline = pipeline(megabits);
            long alone = swapped(MICRO_BATCHES / RANKS);
            double sums = 2 * 32 * PARAMETERS * BLOCKS * (RANKS - 1) / RANKS / megabits;
            out.printf(
                    "%12d %14.1f %16.1f %11.2f; %9.2f%n",
                    megabits,
                    pipeline / 1e3,
                    alone / 1e3,
                    (double) pipeline / alone,
                    pipeline / (alone + sums));
        }
        out.printf(
                "%nratio: time of the pipeline / time of four replicas, which exchange nothing in the step or sum all gradients%n");
    }

    private static SwapPart block() {
        return new SwapPart(Math.round(4 * PARAMETERS), FORWARD, 2 * FORWARD, LOAD);
    }

    private static long swapped(int microBatches) {
        Schedule order =
                Lowering.lower(
                        Generators.generate(
                                "breadth-first",
                                new PipelineShape(1, BLOCKS, microBatches, List.of(1)),
                                GenerateOptions.defaults()),
                        LoweringOptions.plain()
                                .withReduction(GradientReduction.PER_STEP)
                                .withGathers(
                                        new GatherSettings(
                                                ParameterResidency.PER_PASS, microBatches)));
        return ScheduleSimulator.simulate(
                        order,
                        UnitCosts.of(
                                Map.of(
                                        Kind.FORWARD, FORWARD,
                                        Kind.BACKWARD, 2 * FORWARD,
                                        Kind.GATHER, LOAD,
                                        Kind.REDUCE, LOAD)))
                .makespanNanos();
    }

    private static long pipeline(int megabits) {
        long blocks = BLOCKS / RANKS;
        Schedule order =
                Lowering.lower(
                        Generators.generate(
                                "1f1b",
                                PipelineShape.of(RANKS, MICRO_BATCHES),
                                GenerateOptions.defaults()));
        return ScheduleSimulator.simulate(
                        order,
                        UnitCosts.of(
                                Map.of(
                                        Kind.FORWARD, blocks * FORWARD,
                                        Kind.BACKWARD, 2 * blocks * FORWARD,
                                        Kind.TRANSFER, LATENCY_MS * 1000,
                                        Kind.LINK, Math.round(ACTIVATION_BITS / megabits))))
                .makespanNanos();
    }
}
