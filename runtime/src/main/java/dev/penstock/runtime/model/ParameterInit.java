package dev.penstock.runtime.model;

import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Gives parameters their first values: what the source has, else GPT-2's. Random numbers are keyed
 * by seed, parameter and element, so they do not depend on the partition.
 */
final class ParameterInit {
    private static final double STANDARD_DEVIATION = 0.02;
    private static final long CHUNK = 1 << 16;

    private final ParameterSource source;
    private final long seed;
    private final int modelLayers;

    /**
     * @param modelLayers blocks of the whole model
     */
    ParameterInit(ParameterSource source, long seed, int modelLayers) {
        this.source = source;
        this.seed = seed;
        this.modelLayers = modelLayers;
    }

    void fill(List<Parameter> parameters, Kernels kernels) {
        for (Parameter p : parameters) {
            if (!given(p.name(), p) && !headFromTokenTable(p)) {
                fillDefault(p.spec(), p.weight().segment());
            }
            if (p.hasCopy()) {
                kernels.copy(p.weight(), p.factor());
            }
            Parameter.Training training = p.training();
            if (training != null) {
                moment("optimizer.m." + p.name(), p.spec(), training.m());
                moment("optimizer.v." + p.name(), p.spec(), training.v());
            }
        }
    }

    private boolean given(String name, Parameter p) {
        return source.fill(name, p.spec().shape(), p.weight().segment());
    }

    /** A tied model's file has no head: an untied head then starts from the token table. */
    private boolean headFromTokenTable(Parameter p) {
        return p.name().equals(StageParameters.HEAD_MATRIX)
                && given(StageParameters.TOKEN_TABLE, p);
    }

    private void moment(String name, ParameterSpec spec, Tensor moment) {
        if (!source.fill(name, spec.shape(), moment.segment())) {
            moment.segment().fill((byte) 0);
        }
    }

    private void fillDefault(ParameterSpec spec, MemorySegment weight) {
        switch (spec.initial()) {
            case ZERO -> weight.fill((byte) 0);
            case ONE -> fillConstant(weight, 1);
            case NORMAL -> fillNormal(spec.name(), weight, STANDARD_DEVIATION);
            case RESIDUAL ->
                    fillNormal(
                            spec.name(),
                            weight,
                            STANDARD_DEVIATION / StrictMath.sqrt(2.0 * modelLayers));
        }
    }

    private static void fillConstant(MemorySegment weight, float value) {
        long n = weight.byteSize() / Float.BYTES;
        for (long i = 0; i < n; i++) {
            weight.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        }
    }

    private void fillNormal(String name, MemorySegment weight, double deviation) {
        CounterRandom random = CounterRandom.of(seed, name);
        long n = weight.byteSize() / Float.BYTES;
        LongStream.rangeClosed(0, (n - 1) / CHUNK)
                .parallel()
                .forEach(
                        chunk -> {
                            long end = Math.min(n, (chunk + 1) * CHUNK);
                            for (long i = chunk * CHUNK; i < end; i++) {
                                weight.setAtIndex(
                                        ValueLayout.JAVA_FLOAT,
                                        i,
                                        (float) (random.normal(i) * deviation));
                            }
                        });
    }
}
