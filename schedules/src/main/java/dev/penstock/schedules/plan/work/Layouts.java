package dev.penstock.schedules.plan.work;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The sizes that divide: layouts of a cluster, micro-batches of a replica, slices of a sequence.
 */
public final class Layouts {
    private Layouts() {}

    /**
     * Every layout that the cluster has devices for. The shards of a replica are inside one node
     * and take whole heads of keys and equal parts of the hidden columns; replicas share the batch
     * evenly.
     */
    public static List<Layout> of(PlanRequest request) {
        Hardware cluster = request.cluster();
        int devices = cluster.devices();
        var layouts = new ArrayList<Layout>();
        BlockShape block = request.model().block();
        for (int tensor : divisors(block.keyHeads())) {
            boolean insideNodes =
                    block.hidden() % tensor == 0
                            && cluster.groups().stream()
                                    .allMatch(g -> g.devicesPerNode() % tensor == 0);
            for (int data : divisors(request.batch())) {
                int most = Math.min(devices / tensor / data, request.model().layers() + 2);
                for (int pipeline = 1; insideNodes && pipeline <= most; pipeline++) {
                    layouts.add(new Layout(pipeline, tensor, data));
                }
            }
        }
        return layouts;
    }

    public static List<Integer> divisors(int number) {
        return IntStream.rangeClosed(1, number).filter(d -> number % d == 0).boxed().toList();
    }

    /** The ways to cut a sequence that are tried: equal tokens, and equal FLOPs if that differs. */
    public static List<List<Integer>> slicings(ModelShape model, int slices) {
        List<Integer> equal = equalSlices(model.sequence(), slices);
        List<Integer> balanced = model.sliceBalance().lengths(model.sequence(), slices);
        return equal.equals(balanced) ? List.of(equal) : List.of(equal, balanced);
    }

    /** Slices that differ by at most one token. */
    public static List<Integer> equalSlices(int sequence, int slices) {
        return IntStream.range(0, slices)
                .mapToObj(i -> sequence / slices + (i < sequence % slices ? 1 : 0))
                .toList();
    }
}
