package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class ListenerFanOutTest {
    private static final StepReport STEP = new StepReport(3, 2.5, 1, 1, 0, 1, List.of());

    @Test
    void aFailingListenerHurtsNobodyElse() {
        Heard before = new Heard();
        Heard after = new Heard();
        ListenerFanOut all = new ListenerFanOut(List.of(before, new Failing(), after));

        all.onOpened(List.of("cpu"), "onednn");
        all.onStep(STEP);
        all.onEvaluation(3, 2.25, OptionalDouble.empty());
        all.onCheckpoint(3, 1024, 5);
        all.onCheckpointFailed(4, "no space");
        all.onStall("rank 1 waits");

        assertThat(before.events)
                .containsExactly(
                        "opened [cpu] onednn",
                        "step 3",
                        "evaluation 2.25",
                        "checkpoint 3",
                        "no space",
                        "rank 1 waits");
        assertThat(after.events).isEqualTo(before.events);
    }

    private static final class Heard implements RunListener {
        final List<String> events = new ArrayList<>();

        @Override
        public void onOpened(List<String> devices, String fingerprint) {
            events.add("opened " + devices + " " + fingerprint);
        }

        @Override
        public void onStep(StepReport report) {
            events.add("step " + report.step());
        }

        @Override
        public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
            events.add("evaluation " + loss);
        }

        @Override
        public void onCheckpoint(long step, long bytes, long nanos) {
            events.add("checkpoint " + step);
        }

        @Override
        public void onCheckpointFailed(long step, String reason) {
            events.add(reason);
        }

        @Override
        public void onStall(String report) {
            events.add(report);
        }
    }

    private static final class Failing implements RunListener {
        @Override
        public void onOpened(List<String> devices, String fingerprint) {
            throw new IllegalStateException("opened");
        }

        @Override
        public void onStep(StepReport report) {
            throw new IllegalStateException("step");
        }

        @Override
        public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
            throw new IllegalStateException("evaluation");
        }

        @Override
        public void onCheckpoint(long step, long bytes, long nanos) {
            throw new IllegalStateException("checkpoint");
        }

        @Override
        public void onCheckpointFailed(long step, String reason) {
            throw new IllegalStateException("failed");
        }

        @Override
        public void onStall(String report) {
            throw new NoClassDefFoundError("stall");
        }
    }
}
