package dev.penstock.schedules.plan.work;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;

/**
 * What tensor shards of a block send and hold, on a line (Megatron-LM, arXiv 1909.08053), in 2d
 * (Optimus, 2104.05343), 2.5d (Tesseract, 2105.14500) and 3d (2105.14450). With n rows of width h
 * in a GPT-2's block, P shards and a side of q, a shard sends in a forward and a backward
 *
 * <pre>
 *   line   8 (P-1)/P n h                              four all-reduces
 *   2d     3 (q-1)/q^2 (7 n h + 12 h^2)               blocks of X and W to q-1 others in every product
 *   2.5d   3 (q-1)/q^2 (7 n h / d + 12 h^2) + 2 (d-1)/d 12 h^2 / q^2
 *   3d     3 (q-1)/q^3 (16 n h + 12 h^2)
 * </pre>
 *
 * and keeps of the activations all of what is not between two matrices on a line, a P-th on a mesh.
 */
public final class TensorMeshes {
    /** How many shards the layouts have. */
    public static final List<Integer> RANKS = List.of(4, 16, 64);

    private TensorMeshes() {}

    /**
     * A layout of the shards of a block.
     *
     * @param name for people: {@code line}, {@code 2d [2, 2]}
     * @param sentBytes what a shard sends in a forward and a backward of a micro-batch
     * @param keptBytes activations that it keeps from one to the other
     * @param stateBytes its parameters, gradients and moments of the block's matrices
     */
    public record Layout(
            String name, int ranks, double sentBytes, double keptBytes, double stateBytes) {}

    /**
     * Returns the layouts of 4, 16 and 64 shards.
     *
     * @param sequences of a micro-batch
     */
    public static List<Layout> of(ModelShape model, TrainingBytes bytes, int sequences) {
        List<Layout> layouts = new ArrayList<>();
        for (int ranks : RANKS) {
            int side = (int) Math.round(Math.sqrt(ranks));
            int third = (int) Math.round(Math.cbrt(ranks));
            var work = new Work(model, bytes, (double) sequences * model.sequence());
            layouts.add(
                    work.layout(
                            "line",
                            ranks,
                            8 * (ranks - 1.0) / ranks * work.stream(),
                            work.onLine(ranks),
                            ranks));
            layouts.add(
                    work.layout(
                            "2d [%d, %d]".formatted(side, side),
                            ranks,
                            work.plane(side, 1),
                            work.onMesh(ranks),
                            ranks));
            int depth = ranks / 4;
            if (depth > 1) {
                layouts.add(
                        work.layout(
                                "2.5d [2, 2, %d]".formatted(depth),
                                ranks,
                                work.plane(2, depth),
                                work.onMesh(ranks),
                                4));
            }
            if (third * third * third == ranks) {
                layouts.add(
                        work.layout(
                                "3d [%d, %d, %d]".formatted(third, third, third),
                                ranks,
                                work.cube(third),
                                work.onMesh(ranks),
                                ranks));
            }
        }
        return layouts;
    }

    /**
     * Returns from how many rows for each column of the width on the forward of a block takes less
     * time in 2d than on a line where links bound it, as Optimus reckons (table 1): {@code 4
     * (P-1)/P n h} of all-reduces in rings, against {@code log2 P / (2 sqrt P) (7 n h + 12 h^2)} of
     * broadcasts in trees. Empty: never.
     */
    public static OptionalDouble rowsFrom(int ranks) {
        double trees = Math.log(ranks) / Math.log(2) / (2 * Math.sqrt(ranks));
        double saved = 4 * (ranks - 1.0) / ranks - 7 * trees;
        return saved <= 0 ? OptionalDouble.empty() : OptionalDouble.of(12 * trees / saved);
    }

    private record Work(ModelShape model, TrainingBytes bytes, double rows) {
        double stream() {
            return rows * model.width();
        }

        /** Inputs of the four products. */
        private double inputs() {
            return rows * (2.0 * model.width() + model.queryColumns() + model.block().hidden());
        }

        private double outputs() {
            return rows
                    * (2.0 * model.width()
                            + model.queryColumns()
                            + 2.0 * model.keyColumns()
                            + model.hiddenColumns());
        }

        private double matrices() {
            return model.blockMatrixParameters();
        }

        double plane(int side, int depth) {
            double blocks = 3 * (side - 1.0) / (side * side) * (inputs() / depth + matrices());
            return blocks + 2 * (depth - 1.0) / depth * matrices() / (side * side);
        }

        double cube(int side) {
            return 3 * (side - 1.0) / Math.pow(side, 3) * (inputs() + outputs() + matrices());
        }

        double onLine(int ranks) {
            return UnitBytes.kept(model, bytes, ranks, Math.round(rows));
        }

        double onMesh(int ranks) {
            return UnitBytes.kept(model, bytes, 1, Math.round(rows)) / (double) ranks;
        }

        Layout layout(String name, int ranks, double sent, double kept, int parts) {
            double state = bytes.parameter() + bytes.gradient() + bytes.optimizer();
            return new Layout(
                    name, ranks, sent * bytes.activation(), kept, state * matrices() / parts);
        }
    }
}
