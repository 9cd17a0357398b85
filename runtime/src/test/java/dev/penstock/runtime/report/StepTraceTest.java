package dev.penstock.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.RankSteps;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.schedules.ir.PipelineShape;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class StepTraceTest {
    private final SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));

    /** Two replicas of two stages. */
    @Test
    void everyRankOfAGridHasItsNameAndItsOps() throws IOException {
        var grid = new RankGrid(2, 1, 1, 2);
        List<RankStep> ranks = new ArrayList<>(run.perfect(1).ranks());
        for (RankStep rank : run.noisy(1).ranks()) {
            ranks.add(
                    RankSteps.of(
                            rank.rank() + 2,
                            rank.opStartNanos(),
                            rank.opEndNanos(),
                            rank.updateStartNanos(),
                            rank.updateEndNanos(),
                            0,
                            0));
        }
        var out = new StringWriter();

        new StepTrace("run", run.schedule(), grid)
                .write(List.of(new StepReport(1, 1, 1, 1, 0, 1, ranks)), out);

        Map<Integer, Integer> events = new TreeMap<>();
        Map<Integer, String> names = new TreeMap<>();
        for (JsonNode event : new ObjectMapper().readTree(out.toString()).get("traceEvents")) {
            int rank = event.get("tid").asInt();
            if (event.get("ph").asText().equals("X")) {
                events.merge(rank, 1, Integer::sum);
            } else if (event.get("name").asText().equals("thread_name")) {
                names.put(rank, event.get("args").get("name").asText());
            }
        }
        int ops = run.schedule().program(0).ops().size();
        assertThat(events).isEqualTo(Map.of(0, ops + 1, 1, ops + 1, 2, ops + 1, 3, ops + 1));
        assertThat(names.values()).containsExactly("rank 0", "rank 1", "rank 2", "rank 3");
    }
}
