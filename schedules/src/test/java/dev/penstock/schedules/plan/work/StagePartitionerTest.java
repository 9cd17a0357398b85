package dev.penstock.schedules.plan.work;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class StagePartitionerTest {
    /** Costs and room of stages, all different. */
    private record Load(long[] fixed, long[] perBlock, int[] room)
            implements StagePartitioner.StageLoad {
        static Load random(Random random, int stages, int blocks) {
            return new Load(
                    random.longs(stages, 0, 30).toArray(),
                    random.longs(stages, 0, 10).toArray(),
                    random.ints(stages, 0, blocks + 3).toArray());
        }

        @Override
        public long nanos(int stage, int blocks) {
            return fixed[stage] + perBlock[stage] * blocks;
        }

        @Override
        public boolean fits(int stage, int blocks) {
            return blocks <= room[stage];
        }

        long most(List<Integer> partition) {
            return IntStream.range(0, partition.size())
                    .mapToLong(stage -> nanos(stage, partition.get(stage)))
                    .max()
                    .orElseThrow();
        }

        long squares(List<Integer> partition) {
            return IntStream.range(0, partition.size())
                    .mapToLong(stage -> nanos(stage, partition.get(stage)))
                    .map(nanos -> nanos * nanos)
                    .sum();
        }

        boolean fits(List<Integer> partition) {
            return IntStream.range(0, partition.size()).allMatch(s -> fits(s, partition.get(s)));
        }
    }

    private static List<List<Integer>> all(int blocks, int stages) {
        List<List<Integer>> all = new ArrayList<>();
        fill(new int[stages], 0, blocks, all);
        return all;
    }

    private static void fill(int[] counts, int stage, int left, List<List<Integer>> all) {
        int stages = counts.length;
        if (stage == stages) {
            if (left == 0) {
                all.add(Arrays.stream(counts).boxed().toList());
            }
            return;
        }
        int blocks = left + IntStream.of(counts).limit(stage).sum();
        boolean mayBeEmpty =
                stages > 1
                        && ((stage == stages - 1 && stages > blocks)
                                || (stage == 0 && stages > blocks + 1));
        for (int count = mayBeEmpty ? 0 : 1; count <= left; count++) {
            counts[stage] = count;
            fill(counts, stage + 1, left - count, all);
        }
        counts[stage] = 0;
    }

    @Test
    void itsLargestStageIsThatOfBruteForce() {
        Random random = new Random(3);
        int impossible = 0;
        for (int round = 0; round < 3000; round++) {
            int blocks = 1 + random.nextInt(8);
            int stages = 1 + random.nextInt(Math.min(5, blocks + 2));
            Load load = Load.random(random, stages, blocks);

            Optional<List<Integer>> found = StagePartitioner.partition(blocks, stages, load);

            OptionalLong least =
                    all(blocks, stages).stream().filter(load::fits).mapToLong(load::most).min();
            assertThat(found.isPresent()).isEqualTo(least.isPresent());
            found.ifPresent(
                    partition -> {
                        assertThat(partition.stream().mapToInt(n -> n).sum()).isEqualTo(blocks);
                        assertThat(load.fits(partition)).isTrue();
                        assertThat(load.most(partition)).isEqualTo(least.getAsLong());
                    });
            impossible += found.isEmpty() ? 1 : 0;
        }
        assertThat(impossible).isBetween(100, 2900);
    }

    @Test
    void equalBlocksAreSpreadEvenly() {
        Random random = new Random(4);
        for (int round = 0; round < 500; round++) {
            int blocks = 1 + random.nextInt(9);
            int stages = 1 + random.nextInt(Math.min(5, blocks + 2));
            long[] block = new long[stages];
            Arrays.fill(block, 7);
            int[] room = new int[stages];
            Arrays.fill(room, blocks);
            Load load = new Load(random.longs(stages, 0, 30).toArray(), block, room);

            List<Integer> found = StagePartitioner.partition(blocks, stages, load).orElseThrow();

            long least = all(blocks, stages).stream().mapToLong(load::squares).min().orElseThrow();
            assertThat(load.squares(found)).isEqualTo(least);
        }
    }

    @Test
    void theHeadTakesThePlaceOfBlocks() {
        Load load =
                new Load(
                        new long[] {1, 0, 0, 20},
                        new long[] {10, 10, 10, 10},
                        new int[] {9, 9, 9, 9});

        assertThat(StagePartitioner.partition(14, 4, load)).contains(List.of(4, 4, 4, 2));
    }

    @Test
    void refusesMoreStagesThanThereIsToHold() {
        Load load = Load.random(new Random(1), 6, 3);

        assertThatThrownBy(() -> StagePartitioner.partition(3, 6, load))
                .hasMessageContaining("3 blocks fill 1 to 5 stages, got 6");
    }
}
