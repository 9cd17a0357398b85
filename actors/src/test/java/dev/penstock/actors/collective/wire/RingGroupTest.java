package dev.penstock.actors.collective.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Tensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The same in the form of a ring: the bits of those who add in member order. */
final class RingGroupTest extends DataPlaneGroupTest {
    private long ringFromBytes;

    @Override
    public long ringFromBytes() {
        return ringFromBytes;
    }

    @Override
    public CollectiveForm form() {
        return CollectiveForm.RING;
    }

    /** A chain of all bytes in member order; then the sums, to their owners or round. */
    @Override
    public long expectedBytes(CollectiveKind kind, long bytes, int members, int member) {
        int last = members - 1;
        return switch (kind) {
            case REDUCE_SCATTER -> member == last ? bytes * last / members : bytes;
            case ALL_GATHER -> bytes * last / members;
            case ALL_REDUCE -> member < last - 1 ? 2 * bytes : bytes;
            case PASS -> 0;
        };
    }

    @Test
    void whatIsSmallerGoesDirectly() throws Exception {
        ringFromBytes = 4096;

        together(
                4,
                (group, device) -> {
                    Tensor small = device.memory().tensor("small", DType.F32, 1, 1023);
                    Tensor large = device.memory().tensor("large", DType.F32, 1, 1024);
                    group.await(group.allReduce(small));
                    long direct = group.sentBytes();
                    group.await(group.allReduce(large));
                    assertThat(direct)
                            .isEqualTo(
                                    CollectiveForm.DIRECT.sentBytes(
                                            CollectiveKind.ALL_REDUCE,
                                            new ShardMap(1023, 4),
                                            group.index(),
                                            4));
                    assertThat(group.sentBytes() - direct)
                            .isEqualTo(group.index() < 2 ? 2 * 4096 : 4096);
                });
    }

    /** Three blocks and a bit, so that several are under way at a time. */
    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    void everyLinkCarriesWhatGoesRound(int members) throws Exception {
        int elements = 3 * BlockChannel.BLOCK_BYTES / Float.BYTES + 7;
        long bytes = 4L * elements;
        int last = members - 1;

        together(
                members,
                (group, device) -> {
                    var ring = (DataPlaneGroup) group;
                    Tensor whole = device.memory().tensor("whole", DType.F32, 1, elements);
                    ring.await(ring.allReduce(whole));
                    for (int to = 0; to < members; to++) {
                        long chain = to == ring.index() + 1 ? bytes : 0;
                        boolean round = to == ring.next() && ring.index() != last - 1;
                        assertThat(ring.sentBytesTo(to))
                                .as("from %d to %d", ring.index(), to)
                                .isEqualTo(chain + (round ? bytes : 0));
                    }

                    var map = new ShardMap(elements, members);
                    long before = ring.sentBytesTo(ring.next());
                    ring.await(ring.allGather(whole, map));
                    assertThat(ring.sentBytesTo(ring.next()) - before)
                            .isEqualTo(bytes - 4 * map.count(ring.next()));

                    long[] sent = new long[members];
                    for (int to = 0; to < members; to++) {
                        sent[to] = ring.sentBytesTo(to);
                    }
                    ring.await(ring.reduceScatter(whole, map));
                    for (int to = 0; to < members; to++) {
                        long chain = to == ring.index() + 1 ? bytes : 0;
                        boolean owner = ring.index() == last && to != last;
                        assertThat(ring.sentBytesTo(to) - sent[to])
                                .as("sums from %d to %d", ring.index(), to)
                                .isEqualTo(chain + (owner ? 4 * map.count(to) : 0));
                    }
                });
    }
}
