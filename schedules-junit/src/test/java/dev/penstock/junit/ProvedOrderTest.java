package dev.penstock.junit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.validate.ValidationReport;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

class ProvedOrderTest {
    // @start region="example"
    @ProvedOrder("src/test/orders/mine.txt")
    void mineKeepsItsRanksBusy(Schedule order) {
        var timeline = ScheduleSimulator.simulate(order, CostModel.unit());

        assertThat(timeline.bubble().bubbleShare()).isLessThan(0.15);
    }

    // @end

    @ProvedOrder(value = "src/test/orders/mine.txt", buffers = 2, peakUnits = 3)
    void theReportIsOfWhatWouldRun(ValidationReport report) {
        assertThat(report.isValid()).isTrue();
        assertThat(report.schedule().hasTransfers()).isTrue();
    }

    /** Run by the tests below and by nobody else. */
    static final class Broken {
        @ProvedOrder("src/test/orders/{hangs,mine,misspelt}.txt")
        void each() {}

        @ProvedOrder("src/test/orders/nothing.txt")
        void missing() {}

        @ProvedOrder("src/test/orders/no-*.txt")
        void noMatch() {}

        @ProvedOrder(value = "src/test/orders/mine.txt", peakUnits = 2)
        void heavy() {}

        @ProvedOrder(value = "src/test/orders/mine.txt")
        void fails() {
            throw new AssertionError("the body ran");
        }
    }

    @Test
    void eachFileThatMatchesIsATestOfItsOwn() {
        List<String> ended = endsOf("each");

        assertThat(ended).hasSize(3);
        assertThat(ended.get(0))
                .startsWith("src/test/orders/hangs.txt FAILED")
                .contains("src/test/orders/hangs.txt is invalid")
                .contains("src/test/orders/hangs.txt:6:13: ")
                .contains("rank 1 |");
        assertThat(ended.get(1)).startsWith("src/test/orders/mine.txt SUCCESSFUL");
        assertThat(ended.get(2))
                .startsWith("src/test/orders/misspelt.txt FAILED")
                .contains("src/test/orders/misspelt.txt:4:13: ");
    }

    @Test
    void aMissingFileFails() {
        assertThat(endsOf("missing"))
                .singleElement()
                .asString()
                .contains("nothing.txt: expected a file with an order");
        assertThat(endsOf("noMatch")).singleElement().asString().contains("FAILED");
    }

    @Test
    void limitsAreHeld() {
        assertThat(endsOf("heavy")).singleElement().asString().contains("FAILED", "rank 0");
    }

    @Test
    void theBodyRunsAfterTheProof() {
        assertThat(endsOf("fails")).singleElement().asString().contains("the body ran");
    }

    /** Display name, status and reason of each test of a method. */
    private static List<String> endsOf(String method) {
        List<String> ended = new ArrayList<>();
        var request =
                LauncherDiscoveryRequestBuilder.request()
                        .selectors(DiscoverySelectors.selectMethod(Broken.class, method))
                        .build();
        LauncherFactory.create()
                .execute(
                        request,
                        new TestExecutionListener() {
                            @Override
                            public void executionFinished(
                                    TestIdentifier test, TestExecutionResult result) {
                                if (test.isTest()) {
                                    ended.add(
                                            "%s %s %s"
                                                    .formatted(
                                                            test.getDisplayName(),
                                                            result.getStatus(),
                                                            result.getThrowable()
                                                                    .map(Throwable::getMessage)
                                                                    .orElse("")));
                                }
                            }
                        });
        return ended;
    }
}
