package dev.penstock.runtime.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.launch.AuditTrail;
import dev.penstock.runtime.launch.AuditTrail.Holder;
import dev.penstock.runtime.model.shape.OuterSettings;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AppliedOnceTest {
    private static final PipelineShape ONE_STAGE = PipelineShape.of(1, 2, 1);
    private static final Placement ONE_RANK = Placement.loop(1, 1);
    private static final String TRUTH =
            """
            summed 1 0.0 1.0
            applied 1 000000aa 000000bb
            summed 2 0.0 1.0
            applied 2 000000bb 000000cc
            summed 3 0.0 1.0
            applied 3 000000cc 000000dd
            """;

    @TempDir Path reference;
    @TempDir Path harmed;

    @BeforeEach
    void theRunWithoutFaults() throws IOException {
        write(reference, TRUTH);
    }

    @Test
    void holdsForTheSameBooks() throws IOException {
        assertThat(violations(TRUTH)).isEmpty();
    }

    @Test
    void holdsForStepsThatAreDoneAgainFromACheckpoint() throws IOException {
        assertThat(
                        violations(
                                """
                                summed 1 0.0 1.0
                                applied 1 000000aa 000000bb
                                summed 2 0.0 1.0
                                applied 2 000000bb 000000cc
                                summed 2 0.0 1.0
                                applied 2 000000bb 000000cc
                                summed 3 0.0 1.0
                                applied 3 000000cc 000000dd
                                """))
                .isEmpty();
    }

    @Test
    void holdsWhereAMirrorAppliedAStepForADeadRank() throws IOException {
        assertThat(
                        violations(
                                """
                                summed 1 0.0 1.0
                                applied 1 000000aa 000000bb
                                summed 2 0.0 1.0
                                summed 3 0.0 1.0
                                applied 3 000000cc 000000dd
                                """))
                .isEmpty();
    }

    @Test
    void aStepThatIsAppliedTwiceIsFound() throws IOException {
        assertThat(
                        violations(
                                """
                                summed 1 0.0 1.0
                                applied 1 000000aa 000000bb
                                summed 2 0.0 1.0
                                applied 2 000000bb 000000cc
                                applied 2 000000cc 000000c1
                                summed 3 0.0 1.0
                                applied 3 000000c1 000000d1
                                """))
                .containsExactly(
                        "stage 0, step 2: an update led from state 000000cc to 000000c1; without"
                                + " faults it was from 000000bb to 000000cc",
                        "stage 0, step 3: an update led from state 000000c1 to 000000d1; without"
                                + " faults it was from 000000cc to 000000dd");
    }

    @Test
    void aStepThatIsLeftOutIsFound() throws IOException {
        assertThat(
                        violations(
                                """
                                summed 1 0.0 1.0
                                applied 1 000000aa 000000bb
                                summed 2 0.0 1.0
                                summed 3 0.0 1.0
                                applied 3 000000bb 000000cd
                                """))
                .hasSize(1)
                .first()
                .asString()
                .contains("step 3", "from state 000000bb");
    }

    @Test
    void aGradientThatIsMissingOrTwiceInTheSumIsFound() throws IOException {
        assertThat(violations(TRUTH.replace("summed 2 0.0 1.0", "summed 2 0.0 0.0")))
                .containsExactly(
                        "stage 0, step 2: the gradient of micro-batch 0, slice 0 is in the sum 2"
                                + " times",
                        "stage 0, step 2: the gradient of micro-batch 1, slice 0 is in the sum 0"
                                + " times");
    }

    @Test
    void theLastStepHasToBeInTheBook() throws IOException {
        assertThat(violations(TRUTH.replace("applied 3 000000cc 000000dd\n", "")))
                .containsExactly("stage 0, step 3: there is no proof that it was applied");
    }

    @Test
    void aRunWithoutFaultsThatBreaksItsOwnChainProvesNothing() throws IOException {
        write(reference, TRUTH.replace("applied 2 000000bb", "applied 2 000000b1"));

        assertThat(violations(TRUTH)).first().asString().contains("the chain of states is broken");
    }

    @Test
    void everyReplicaAndShardKeepsItsOwnBook() throws IOException {
        RankGrid grid = new RankGrid(1, 2, 1, 2);
        List<String> others =
                List.of("stage-0-tensor-1", "stage-0-data-1", "stage-0-tensor-1-data-1");
        for (String holder : others) {
            write(reference, holder, TRUTH.replace("000000", "11111f"));
            write(harmed, holder, TRUTH.replace("000000", "11111f"));
        }
        write(harmed, TRUTH);
        assertThat(violations(grid)).isEmpty();

        String twice = TRUTH.replace("summed 3", "applied 2 000000cc 000000c1\nsummed 3");
        write(harmed, "stage-0-data-1", twice.replace("000000", "11111f"));

        assertThat(violations(grid))
                .containsExactly(
                        "stage 0 data 1, step 2: an update led from state 11111fcc to 11111fc1;"
                                + " without faults it was from 11111fbb to 11111fcc");
    }

    @Test
    void whereReplicasShareMicroBatchesOneMayBeAbsentButNotAll() throws IOException {
        var grid = new RankGrid(1, 1, 1, 2);
        PipelineShape shared = ONE_STAGE.withPeers(2);
        write(reference, "stage-0-data-1", TRUTH);
        write(harmed, "stage-0-data-1", TRUTH);
        assertThat(violations(shared, grid)).isEmpty();

        write(harmed, "stage-0-data-1", TRUTH.replace("summed 3 0.0 1.0\n", ""));

        assertThat(violations(shared, grid))
                .containsExactly("stage 0, step 3: its gradients were never complete");
    }

    @Test
    void anExchangeMayChangeTheStateBehindItsOwnStepAlone() throws IOException {
        String exchanged = TRUTH.replace("applied 3 000000cc", "applied 3 000000c9");
        write(reference, exchanged);
        write(harmed, exchanged);

        assertThat(violations(outer(2, 0))).isEmpty();
        assertThat(violations(outer(1, 0))).isEmpty();
        assertThat(violations(outer(3, 0))).first().asString().contains("chain of states");
        assertThat(violations(outer(2, 1))).first().asString().contains("chain of states");

        write(harmed, TRUTH);

        assertThat(violations(outer(2, 0)))
                .containsExactly(
                        "stage 0, step 3: an update led from state 000000cc to 000000dd; without"
                                + " faults it was from 000000c9 to 000000dd");
    }

    private static OuterSettings outer(int every, int lag) {
        return new OuterSettings(every, lag, 1, true, 0.7, 0.9, 0.5, Optional.empty(), 0);
    }

    private List<String> violations(OuterSettings outer) {
        return violations(ONE_STAGE, new RankGrid(1, 1, 1, 1), Optional.of(outer));
    }

    @Test
    void aRankWithoutABookHasDoneNothing() {
        assertThat(violations(ONE_STAGE, new RankGrid(1, 1, 1, 1)))
                .hasSize(6)
                .first()
                .isEqualTo("stage 0, step 1: its gradients were never complete");
    }

    private List<String> violations(String books) throws IOException {
        write(harmed, books);
        return violations(new RankGrid(1, 1, 1, 1));
    }

    private List<String> violations(RankGrid grid) {
        return violations(ONE_STAGE, grid);
    }

    private List<String> violations(PipelineShape shape, RankGrid grid) {
        return violations(shape, grid, Optional.empty());
    }

    private List<String> violations(
            PipelineShape shape, RankGrid grid, Optional<OuterSettings> outer) {
        return new AppliedOnce(shape, 3, Holder.all(grid, ONE_RANK), outer)
                .violations(new AuditTrail(reference), new AuditTrail(harmed));
    }

    private static void write(Path folder, String books) throws IOException {
        write(folder, "stage-0", books);
    }

    private static void write(Path folder, String holder, String books) throws IOException {
        Files.writeString(folder.resolve(holder + ".txt"), books);
    }
}
