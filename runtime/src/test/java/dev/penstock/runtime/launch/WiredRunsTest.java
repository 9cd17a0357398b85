package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.rank.RankEvent;
import dev.penstock.runtime.cli.Training;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Replicas that do each other's micro-batches: real ranks with real stages, on one thread. */
class WiredRunsTest {
    private static final List<String> TINY =
            List.of(
                    "device.kind=reference",
                    "model.context=8",
                    "model.width=8",
                    "device.reduction-block=4",
                    "optimizer.gradient-sum=fixed-point",
                    "batch.sequences=12",
                    "batch.micro-batches=12");

    @TempDir Path folder;

    private RanksInOneThread ranks(String... settings) {
        Training.onText(folder);
        return new RanksInOneThread(
                folder.resolve("tiny.conf"),
                Stream.concat(TINY.stream(), Stream.of(settings)).toList());
    }

    private RanksInOneThread.Outcome alone(String... settings) {
        try (var one = ranks(settings)) {
            return one.train(1, List.of());
        }
    }

    @ParameterizedTest
    @CsvSource({"wired-1f1b, 3, 1", "wired-zb, 4, 1", "wired-1f1b, 4, 2", "wired-zb, 3, 2"})
    void randomWiringsGiveOneLossAndOneGradient(String kind, int peers, int slices) {
        RanksInOneThread.Outcome expected = alone();
        String held = "schedule.hold-more=2";
        try (var ranks =
                ranks(
                        "schedule.kind=" + kind,
                        "parallel.data=" + peers,
                        "schedule.slices=" + slices,
                        held)) {
            assertThat(ranks.train(1, List.of())).isEqualTo(expected);

            for (int seed = 1; seed <= 25; seed++) {
                ranks.follow("schedule.wiring=random", "schedule.wiring-seed=" + seed);

                assertThat(ranks.train(1, List.of())).as("seed %d", seed).isEqualTo(expected);
            }
        }
    }

    @Test
    void anyRanksMayBeAbsentAndComeBackForAStep() {
        RanksInOneThread.Outcome expected = alone();
        double heldOut;
        try (var one = ranks()) {
            heldOut = one.evaluate(0);
        }
        try (var ranks =
                ranks("schedule.kind=wired-zb", "parallel.data=3", "schedule.hold-more=2")) {
            for (List<Integer> absent :
                    List.of(
                            List.of(3),
                            List.of(0),
                            List.of(0, 3, 4),
                            List.<Integer>of(),
                            List.of(1, 3))) {
                ranks.follow("schedule.without=" + absent);

                assertThat(ranks.train(1, List.of())).as("without %s", absent).isEqualTo(expected);
                assertThat(ranks.evaluate(0)).as("without %s", absent).isEqualTo(heldOut);
            }
        }
    }

    /** Sums with what is another's now are of no use; stages stay in memory all the same. */
    @ParameterizedTest
    @CsvSource({"wired-1f1b, 20", "wired-zb, 25"})
    void aStepThatWasLeftBeginsAnewWithOtherWeights(String kind, int tries) {
        RanksInOneThread.Outcome expected = alone();
        try (var ranks =
                ranks("schedule.kind=" + kind, "schedule.wiring=measured", "parallel.data=2")) {
            String layout = ranks.plan().layout();
            ranks.abandon(1, tries);

            List<RankEvent.Prepared> prepared =
                    ranks.follow("schedule.costs=[10,10,10,10,10,10,30,30,30,50,50,50]");

            assertThat(prepared).anyMatch(each -> !each.folded().isEmpty());
            assertThat(ranks.plan().layout()).isEqualTo(layout);
            assertThat(microBatches(ranks)).containsExactly(9, 10, 3, 2);
            assertThat(ranks.train(1, List.of())).isEqualTo(expected);
            ranks.follow(
                    "schedule.costs=[10,10,10,10,10,10,30,30,30,50,50,50]", "schedule.without=[3]");
            assertThat(microBatches(ranks)).containsExactly(9, 12, 3, 0);
            assertThat(ranks.train(1, List.of())).isEqualTo(expected);
        }
    }

    /** By rank. */
    private static List<Integer> microBatches(RanksInOneThread ranks) {
        var wiring = ranks.plan().training().placement().wiring().orElseThrow();
        return IntStream.range(0, wiring.ranks())
                .mapToObj(
                        rank ->
                                wiring.microBatchesOf(
                                                wiring.peerOfRank(rank),
                                                wiring.pipelineRankOf(rank))
                                        .size())
                .toList();
    }

    /** As the supervisor does: what all stages have in their sums is left out of the rest. */
    @ParameterizedTest
    @CsvSource({"wired-1f1b, 1", "wired-zb, 1", "wired-zb, 2"})
    void theRestOfAStepRunsWithoutTheRankThatDied(String kind, int slices) {
        RanksInOneThread.Outcome expected = alone();
        var random = new Random(4);
        int most = 0;
        for (int time = 0; time < 12; time++) {
            int dead = random.nextInt(6);
            try (var ranks =
                    ranks(
                            "schedule.kind=" + kind,
                            "parallel.data=3",
                            "schedule.slices=" + slices,
                            "schedule.hold-more=2")) {
                ranks.abandon(1, 10 + random.nextInt(60));

                List<RankEvent.Prepared> prepared = ranks.follow("schedule.without=[" + dead + "]");
                List<Integer> complete = complete(ranks, prepared);
                most = Math.max(most, complete.size());

                assertThat(ranks.train(1, complete))
                        .as("rank %d died, %s were complete", dead, complete)
                        .isEqualTo(expected);
                ranks.commit(1);
            }
        }
        assertThat(most).isPositive();
    }

    private static List<Integer> complete(
            RanksInOneThread ranks, List<RankEvent.Prepared> prepared) {
        var wiring = ranks.plan().training().placement().wiring().orElseThrow();
        List<Integer> complete = new ArrayList<>();
        for (int m = 0; m < wiring.microBatches(); m++) {
            int microBatch = m;
            boolean everywhere =
                    IntStream.range(0, wiring.stages())
                            .allMatch(
                                    stage ->
                                            prepared.stream()
                                                    .filter(
                                                            p ->
                                                                    p.rank()
                                                                            == wiring.rankOf(
                                                                                    wiring.peerOf(
                                                                                            microBatch,
                                                                                            stage),
                                                                                    stage))
                                                    .flatMap(p -> p.folded().stream())
                                                    .anyMatch(
                                                            folded ->
                                                                    folded.stage() == stage
                                                                            && folded.microBatches()
                                                                                    .contains(
                                                                                            microBatch)));
            if (everywhere) {
                complete.add(m);
            }
        }
        return complete;
    }
}
