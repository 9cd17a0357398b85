package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.memory.Scratch;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** AdamW: of one parameter, or of many by one kernel, which finds them in a table. */
final class GpuOptimizer {
    private static final int THREADS = 256;
    private static final int MOST_BLOCKS = 1 << 16;

    /** Elements of a block. */
    private static final int RUN_ELEMENTS = 4096;

    /** Longs of an {@code Updated}: five addresses, elements, first run, and a float. */
    private static final int ENTRY = 8;

    private final Launch launch;
    private final Scratch scratch;
    private final HostCopies copies;
    private final GpuModule.Function adamW;
    private final GpuModule.Function adamWOfRuns;
    private long[] table = {};

    /**
     * @param scratch for the table alone: if it grew, addresses that come again would not
     * @param copies by which it gets there
     */
    GpuOptimizer(GpuModule module, Launch launch, Scratch scratch, HostCopies copies) {
        this.launch = launch;
        this.scratch = scratch;
        this.copies = copies;
        adamW = module.function("adamW");
        adamWOfRuns = module.function("adamWOfRuns");
    }

    void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step) {
        launch.begin().vector(weight).vector(gradient).vector(m).vector(v);
        launch.wide(weight.elements());
        factors(step);
        long blocks = Math.ceilDiv(weight.elements(), (long) RUN_ELEMENTS);
        launch.run(adamW, Math.clamp(blocks, 1, MOST_BLOCKS), THREADS);
    }

    private void factors(AdamWStep step) {
        double bias1 = 1 - StrictMath.pow(step.beta1(), step.t());
        double bias2 = 1 - StrictMath.pow(step.beta2(), step.t());
        launch.numbers(
                (float) step.gradientScale(),
                keep(step, true),
                (float) step.beta1(),
                (float) (1 - step.beta1()),
                (float) step.beta2(),
                (float) (1 - step.beta2()),
                (float) (step.learningRate() / bias1),
                (float) (1 / Math.sqrt(bias2)),
                (float) step.epsilon());
    }

    private static float keep(AdamWStep step, boolean decays) {
        return decays ? (float) (1 - step.learningRate() * step.decay()) : 1;
    }

    static long tableBytes(List<AdamWParameter> parameters) {
        return (long) ENTRY * Long.BYTES * parameters.size();
    }

    void adamW(List<AdamWParameter> parameters, AdamWStep step) {
        int count = parameters.size();
        if (table.length < ENTRY * count) {
            table = new long[ENTRY * count];
        }
        int runs = 0;
        for (int i = 0; i < count; i++) {
            runs = Math.addExact(runs, enter(ENTRY * i, parameters.get(i), step, runs));
        }
        if (runs == 0) {
            return;
        }
        long bytes = tableBytes(parameters);
        long entries = scratch.reserve(bytes);
        copies.write(entries, MemorySegment.ofArray(table).asSlice(0, bytes));
        launch.begin().wide(entries).integer(count);
        factors(step);
        launch.run(adamWOfRuns, runs, THREADS);
    }

    /** Returns the runs of a parameter. */
    private int enter(int at, AdamWParameter parameter, AdamWStep step, int firstRun) {
        Tensor rounded = parameter.rounded();
        long elements = parameter.weight().elements();
        table[at] = launch.address(parameter.weight());
        table[at + 1] = launch.address(parameter.gradient());
        table[at + 2] = launch.address(parameter.m());
        table[at + 3] = launch.address(parameter.v());
        table[at + 4] = rounded == null ? 0 : launch.address(rounded);
        table[at + 5] = elements;
        table[at + 6] = firstRun;
        table[at + 7] = Float.floatToRawIntBits(keep(step, parameter.decays())) & 0xffff_ffffL;
        return Math.toIntExact(Math.ceilDiv(elements, (long) RUN_ELEMENTS));
    }
}
