package dev.penstock.systemtests.golden;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.systemtests.support.GoldenTruth;
import dev.penstock.systemtests.support.TrafficTruth;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Stages, tensor shards, context parts, replicas, ZeRO and orders in all combinations: the whole
 * program computes what PyTorch computed on one device in double precision.
 */
class GoldenGridsIT {
    /** The orders, in the syntax of the configuration. */
    private static final List<String> ORDERS =
            List.of("kind = 1f1b", "kind = seq1f1b, slice-lengths = [8, 8]");

    private static final int STEPS = 4;

    @TempDir Path folder;

    /** One combination. */
    record Grid(int stages, int tensor, int context, int data, int zero, String order) {
        private String parallel() {
            return "parallel = { tensor = %d, context = %d, data = %d, zero.stage = %d }"
                    .formatted(tensor, context, data, zero);
        }
    }

    static List<Grid> grids() {
        List<Grid> grids = new ArrayList<>();
        for (int stages : List.of(1, 2)) {
            for (int tensor : List.of(1, 2)) {
                for (int context : List.of(1, 2)) {
                    for (int data : List.of(1, 2)) {
                        for (int zero = 0; zero <= (context * data == 1 ? 0 : 3); zero++) {
                            for (String order : ORDERS) {
                                grids.add(new Grid(stages, tensor, context, data, zero, order));
                            }
                        }
                    }
                }
            }
        }
        return grids;
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("grids")
    void everyGridHasPyTorchsLossesAndFirstGradients(Grid grid) throws IOException {
        expectTruth(grid, 1, (grid.stages + grid.tensor + grid.data + grid.zero) % 2 == 0);
    }

    static List<String> families() {
        return Generators.kinds();
    }

    /**
     * Runs on eight ranks; DualPipeV on four, without replicas, since it needs more micro-batches
     * than a replica would have.
     */
    @ParameterizedTest
    @MethodSource("families")
    void everyFamilyRunsWithShardsReplicasAndZero(String kind) throws IOException {
        ScheduleKind family = Generators.kind(kind);
        int chunks = family.chunks() == ScheduleKind.Chunks.ONE ? 1 : 2;
        String order = "kind = %s, slices = %d".formatted(kind, family.sliced() ? 2 : 1);
        Grid grid =
                kind.equals("dualpipe-v")
                        ? new Grid(2, 2, 1, 1, 0, order)
                        : new Grid(2, 2, 1, 2, 3, order);
        expectTruth(grid, chunks, kind.length() % 2 == 0);
    }

    /** Slices that context parts divide, and undivided sequences, with every form of backward. */
    static List<Grid> contextGrids() {
        return List.of(
                new Grid(2, 1, 2, 1, 0, "kind = terapipe, slices = 2"),
                new Grid(2, 1, 2, 1, 0, "kind = seq1f1b, slice-lengths = [4, 8, 4]"),
                new Grid(2, 2, 2, 1, 0, "kind = seq1f1b, slices = 4"),
                new Grid(2, 1, 2, 1, 1, "kind = seq1f1b, slices = 2, recompute = full"),
                new Grid(1, 1, 4, 1, 3, "kind = terapipe, slices = 4"),
                new Grid(2, 1, 4, 1, 0, "kind = zb-h1"),
                new Grid(2, 1, 2, 2, 2, "kind = zb-h1, recompute = blocks"),
                new Grid(1, 1, 4, 1, 0, "kind = gpipe, recompute = full"));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("contextGrids")
    void contextPartsDivideSlicesOfEveryFamily(Grid grid) throws IOException {
        expectTruth(grid, 1, grid.context == 2);
    }

    /** Tensor shards that divide tokens, combined with everything else. */
    static List<Grid> sequenceGrids() {
        return List.of(
                new Grid(1, 2, 1, 1, 0, "kind = 1f1b"),
                new Grid(2, 2, 1, 1, 0, "kind = seq1f1b, slice-lengths = [4, 8, 4]"),
                new Grid(2, 2, 2, 1, 0, "kind = terapipe, slices = 2"),
                new Grid(2, 2, 1, 2, 1, "kind = zb-h1, recompute = blocks"),
                new Grid(1, 2, 1, 2, 2, "kind = 1f1b, recompute = full"),
                new Grid(2, 2, 2, 2, 3, "kind = 1f1b"));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("sequenceGrids")
    void shardsThatDivideTokensHavePyTorchsLossesToo(Grid grid) throws IOException {
        expectTruth(grid, 1, grid.data == 1, "parallel.sequence = true");
    }

    private void expectTruth(Grid grid, int chunks, boolean tied, String... more)
            throws IOException {
        Path gradients = folder.resolve("gradients.safetensors");

        Trained trained =
                Training.golden(folder, tied)
                        .set("run.steps=" + STEPS)
                        .set("pipeline={stages=%d, chunks=%d}".formatted(grid.stages, chunks))
                        .set("schedule={" + grid.order + "}", grid.parallel())
                        .set(more)
                        .option("--dump-gradients", "1:" + gradients)
                        .complete();

        GoldenTruth.expectLosses(trained, tied, "loss_fp64_accum4");
        GoldenTruth.expectFirstGradients(gradients, tied);
        expectTraffic(trained, grid);
    }

    /**
     * Expects the predicted traffic of every rank and step, to the byte; ranks that share something
     * send something.
     */
    private static void expectTraffic(Trained trained, Grid grid) {
        List<Map<String, Long>> ranks = TrafficTruth.expectPredicted(trained);
        assertThat(ranks).hasSize(grid.stages * grid.tensor * grid.context * grid.data);
        boolean shares = grid.context * grid.data > 1;
        for (Map<String, Long> uses : ranks) {
            assertThat(uses.containsKey("tensor sums")).isEqualTo(grid.tensor > 1);
            assertThat(uses.containsKey("keys/values")).isEqualTo(grid.context > 1);
            assertThat(uses.containsKey("gradient sums")).isEqualTo(shares);
            assertThat(uses.containsKey("parameter gathers")).isEqualTo(grid.zero > 0);
        }
    }
}
