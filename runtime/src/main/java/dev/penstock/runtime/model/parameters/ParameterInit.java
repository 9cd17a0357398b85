package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Gives parameters their first values: the source's if it has them, otherwise GPT-2's. Random
 * numbers are keyed by seed, parameter and element of the whole tensor, so they do not depend on
 * which rank holds which piece.
 */
public final class ParameterInit {
    private static final double STANDARD_DEVIATION = 0.02;
    private static final long CHUNK = 1 << 16;

    private final ParameterSource source;
    private final long seed;
    private final int modelLayers;

    /**
     * @param modelLayers blocks of the whole model
     */
    public ParameterInit(ParameterSource source, long seed, int modelLayers) {
        this.source = source;
        this.seed = seed;
        this.modelLayers = modelLayers;
    }

    public void fill(StageParameters parameters, Kernels kernels) {
        try (FillingRoom room = new FillingRoom()) {
            for (Parameter p : parameters.held()) {
                if (!p.group().isAllocated()) {
                    continue;
                }
                if (p.group().isOfIntegers()) {
                    fillIntegers(p, room);
                    continue;
                }
                room.fill(p.heldMaster(), p.piece(), weight -> fillWeight(p, p.piece(), weight));
                if (p.isTrained()) {
                    moment("optimizer.m.", p, p.heldM(), room, kernels);
                    moment("optimizer.v.", p, p.heldV(), room, kernels);
                }
            }
        }
        parameters.groups().forEach(group -> group.masterChanged(kernels));
    }

    /**
     * Rounds every row with the scale of the whole parameter's row, also where this rank holds a
     * part of it: integers do not depend on the layout.
     */
    private void fillIntegers(Parameter p, FillingRoom room) {
        TensorPiece piece = p.spec().piece();
        TensorPiece.Strip first = piece.strips().getFirst();
        TensorPiece rows =
                TensorPiece.strips(
                        piece.whole(),
                        List.of(
                                new TensorPiece.Strip(
                                        first.firstRow(),
                                        first.rows(),
                                        0,
                                        piece.whole().getLast())));
        room.fillScaled(p.factor(), piece, rows, weight -> fillWeight(p, rows, weight));
    }

    private boolean fillWeight(Parameter p, TensorPiece piece, MemorySegment weight) {
        if (!source.fill(p.name(), piece, weight) && !headFromTokenTable(p, piece, weight)) {
            fillDefault(p.spec(), piece, weight);
        }
        return true;
    }

    /** A tied model's file has no head: an untied head then starts from the token table. */
    private boolean headFromTokenTable(Parameter p, TensorPiece piece, MemorySegment weight) {
        return p.name().equals(StageParameters.HEAD_MATRIX)
                && source.fill(StageParameters.TOKEN_TABLE, piece, weight);
    }

    /**
     * Moments that start as zeros are zeroed on the device: the host would have to transfer them.
     * New files are zeros already, and have no need to be written.
     */
    private void moment(
            String prefix, Parameter p, Tensor moment, FillingRoom room, Kernels kernels) {
        boolean filled =
                room.fill(
                        moment,
                        p.piece(),
                        memory -> source.fill(prefix + p.name(), p.piece(), memory));
        if (!filled && p.group().files() == null) {
            kernels.zero(Moments.bits(moment));
        }
    }

    /** Gives a piece of a parameter the values that the whole would have there. */
    void fillDefault(ParameterSpec spec, TensorPiece piece, MemorySegment weight) {
        switch (spec.initial()) {
            case ZERO -> weight.fill((byte) 0);
            case ONE -> fillConstant(weight, 1);
            case NORMAL -> fillNormal(spec.name(), piece, weight, STANDARD_DEVIATION);
            case RESIDUAL ->
                    fillNormal(
                            spec.name(),
                            piece,
                            weight,
                            STANDARD_DEVIATION / StrictMath.sqrt(2.0 * modelLayers));
            case KAIMING -> fillUniform(spec.name(), piece, weight);
        }
    }

    private static void fillConstant(MemorySegment weight, float value) {
        long n = weight.byteSize() / Float.BYTES;
        for (long i = 0; i < n; i++) {
            weight.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        }
    }

    private void fillNormal(
            String name, TensorPiece piece, MemorySegment weight, double deviation) {
        CounterRandom random = CounterRandom.of(seed, name);
        runs(piece).parallelStream()
                .forEach(
                        run -> {
                            for (long i = 0; i < run.count(); i++) {
                                weight.setAtIndex(
                                        ValueLayout.JAVA_FLOAT,
                                        run.inPiece() + i,
                                        (float) (random.normal(run.inWhole() + i) * deviation));
                            }
                        });
    }

    private void fillUniform(String name, TensorPiece piece, MemorySegment weight) {
        CounterRandom random = CounterRandom.of(seed, name);
        double most = 1 / StrictMath.sqrt(piece.whole().getFirst());
        for (Run run : runs(piece)) {
            for (long i = 0; i < run.count(); i++) {
                weight.setAtIndex(
                        ValueLayout.JAVA_FLOAT,
                        run.inPiece() + i,
                        (float) ((2 * random.uniform(run.inWhole() + i) - 1) * most));
            }
        }
    }

    /** Elements that are contiguous in both the whole and the piece. */
    private record Run(long inWhole, long inPiece, long count) {}

    private static List<Run> runs(TensorPiece piece) {
        List<Run> runs = new ArrayList<>();
        piece.walk(
                (inWhole, inPiece, count) -> {
                    for (long at = 0; at < count; at += CHUNK) {
                        runs.add(new Run(inWhole + at, inPiece + at, Math.min(CHUNK, count - at)));
                    }
                });
        return runs;
    }
}
