package dev.penstock.schedules.plan.work;

import java.util.List;
import java.util.stream.IntStream;

/**
 * What the ranks of a layout work with.
 *
 * @param ranks entry r is rank r
 * @param hops entry r is the way from rank r to the next, the last one's to the first
 */
public record LayoutHardware(Layout layout, List<RankHardware> ranks, List<Link> hops) {
    public static LayoutHardware of(Hardware cluster, Layout layout) {
        int ranks = layout.pipeline();
        return new LayoutHardware(
                layout,
                IntStream.range(0, ranks)
                        .mapToObj(rank -> RankHardware.of(cluster, layout, rank))
                        .toList(),
                IntStream.range(0, ranks)
                        .mapToObj(
                                rank -> RankHardware.hop(cluster, layout, rank, (rank + 1) % ranks))
                        .toList());
    }
}
