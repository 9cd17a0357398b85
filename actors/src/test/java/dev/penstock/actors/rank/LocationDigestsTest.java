package dev.penstock.actors.rank;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.PeerAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What two parties with a table each learn from the other's digests. */
class LocationDigestsTest {
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5, 6, 1000})
    void ofOneMoveTheDigestsShowExactlyWhose(int ranks) {
        List<RankLocation> before = table(ranks);

        for (int rank = 0; rank < ranks; rank += 1 + ranks / 7) {
            assertThat(differences(before, moved(before, Set.of(rank)))).containsExactly(rank);
        }
        assertThat(differences(before, List.copyOf(before))).isEmpty();
    }

    @Test
    void neighboursThatMoveTogetherShowFewMore() {
        List<RankLocation> before = table(1000);

        assertThat(differences(before, moved(before, range(96, 104)))) // over the end of a row
                .containsAll(range(96, 104))
                .hasSizeLessThanOrEqualTo(16);
    }

    /** Each component counts: a text that lacks one would hide its changes. */
    @Test
    void everyPartOfALocationIsInTheDigests() {
        var address = new PeerAddress("host", "/dev/shm/a", "10.0.0.1:1");
        var one = new RankLocation(0, 0, 1, Optional.of(address));

        assertThat(
                        List.of(
                                new RankLocation(0, 1, 1, Optional.of(address)),
                                new RankLocation(0, 0, -1, Optional.of(address)),
                                new RankLocation(0, 0, 1, Optional.empty()),
                                withAddress("hosts", "/dev/shm/a", "10.0.0.1:1"),
                                withAddress("host", "/dev/shm/b", "10.0.0.1:1"),
                                withAddress("host", "/dev/shm/a", "10.0.0.1:2")))
                .allSatisfy(
                        other ->
                                assertThat(differences(List.of(one), List.of(other)))
                                        .containsExactly(0));
    }

    private static RankLocation withAddress(String host, String directory, String endpoint) {
        var address = new PeerAddress(host, directory, endpoint);
        return new RankLocation(0, 0, 1, Optional.of(address));
    }

    @Test
    void whoHoldsNothingDiffersEverywhere() {
        assertThat(differences(List.of(), table(10))).hasSize(10);
    }

    @Test
    void aTableOfAnotherSizeDiffersEverywhere() {
        assertThat(differences(table(100), table(10))).hasSize(10);
    }

    @Test
    void noDifferenceIsEverMissed() {
        var random = new SplittableRandom(3);
        for (int round = 0; round < 500; round++) {
            List<RankLocation> before = table(1 + random.nextInt(40));
            Set<Integer> moving = new TreeSet<>();
            for (int rank = 0; rank < before.size(); rank++) {
                if (random.nextInt(6) == 0) {
                    moving.add(rank);
                }
            }
            assertThat(differences(before, moved(before, moving))).containsAll(moving);
        }
    }

    private static List<Integer> differences(List<RankLocation> held, List<RankLocation> now) {
        LocationDigests known = LocationDigests.of(held);
        LocationDigests digests = LocationDigests.of(now);
        return IntStream.range(0, now.size())
                .filter(rank -> digests.mayDiffer(known, rank))
                .boxed()
                .toList();
    }

    private static Set<Integer> range(int from, int to) {
        return IntStream.range(from, to).boxed().collect(Collectors.toSet());
    }

    private static List<RankLocation> table(int ranks) {
        return IntStream.range(0, ranks).mapToObj(rank -> at(rank, "host" + rank)).toList();
    }

    private static List<RankLocation> moved(List<RankLocation> before, Set<Integer> moving) {
        List<RankLocation> after = new ArrayList<>(before);
        moving.forEach(rank -> after.set(rank, at(rank, "new" + rank)));
        return after;
    }

    private static RankLocation at(int rank, String host) {
        var address = new PeerAddress(host, "/dev/shm/" + rank, "10.0.0.1:1");
        return new RankLocation(rank, rank, rank - 1, Optional.of(address));
    }
}
