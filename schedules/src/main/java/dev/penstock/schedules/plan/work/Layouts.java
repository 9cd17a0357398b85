package dev.penstock.schedules.plan.work;

import java.util.ArrayList;
import java.util.Collections;
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
     * evenly. Where groups of nodes differ, so may the shards of ranks on different groups.
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
        if (cluster.groups().size() > 1) {
            for (int data : divisors(request.batch())) {
                addUneven(layouts, request, data, 0, List.of());
            }
        }
        return layouts;
    }

    /**
     * Layouts with the same number of shards on all ranks of a group, but not of all groups. They
     * use all devices of the first groups, and no rank is on two groups:
     *
     * <pre>
     *   fast: 2 devices, slow: 4 devices     [1, 1, 2, 2]  [1, 1, 4]  [2, 4]     [2, 1, 1, 1, 1]
     * </pre>
     *
     * @param group whose ranks come next
     * @param before shards of the ranks on the groups before
     */
    private static void addUneven(
            List<Layout> layouts, PlanRequest request, int data, int group, List<Integer> before) {
        List<NodeGroup> groups = request.cluster().groups();
        BlockShape block = request.model().block();
        if (group == groups.size()) {
            return;
        }
        for (int count : divisors(block.keyHeads())) {
            int ranks = groups.get(group).devices() / (count * data);
            if (ranks < 1
                    || before.size() + ranks > request.model().layers() + 2
                    || block.hidden() % count != 0
                    || groups.get(group).devicesPerNode() % count != 0
                    || before.stream().anyMatch(n -> n % count != 0 && count % n != 0)) {
                continue;
            }
            List<Integer> shards = new ArrayList<>(before);
            shards.addAll(Collections.nCopies(ranks, count));
            boolean endsDiffer = !shards.getFirst().equals(shards.getLast());
            Layout layout = Layout.ofShards(shards, data);
            if (layout.isUneven() && !(request.model().tied() && endsDiffer)) {
                layouts.add(layout);
            }
            if (ranks * count * data == groups.get(group).devices()) {
                addUneven(layouts, request, data, group + 1, shards);
            }
        }
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
