package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankCommand;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** A connection that broke took an answer with it: it is asked for again. */
class LostAnswersTest {
    private final CoordinatedRun run = new CoordinatedRun(4, RecoveryPolicy.DEFAULT);

    @Test
    void aNodeThatDidNotSayWhereItsOpenRankLivesIsAskedAgain() {
        run.open().step().dies(1).prepared(0, 2, 3);
        run.take(run.coordinator.onNode(TestNodes.of("n9", 9, 1), run.now));
        run.opens(1).resumed(0, 2, 3);
        run.forgetTold();
        assertThat(births(1)).isEqualTo(2);

        run.waits(Duration.ofSeconds(40));

        assertThat(births(1)).isEqualTo(3);
        run.hosted(1);
        assertThat(run.told(RankCommand.BeginPass.class)).hasSize(4);
    }

    private long births(int rank) {
        return run.births().stream().filter(birth -> birth.rank() == rank).count();
    }
}
