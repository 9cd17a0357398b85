package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a run leaves in a recording of Java Flight Recorder. */
@Timeout(60)
class FlightRecorderTest {
    @TempDir Path folder;

    @Test
    void everyOpOfEveryPassAndEveryFrameIsInARecordingThatAsksForThem() throws Exception {
        var pipeline = new ChainPipeline("1f1b", new ChainStage.Settings(2, 3, 1, false, 0.01));
        Path file = folder.resolve("run.jfr");
        try (var recording = new Recording()) {
            recording.enable("penstock.Op");
            recording.enable("penstock.Frame");
            recording.start();
            pipeline.run();
            recording.stop();
            recording.dump(file);
        }

        Map<String, List<String>> opsOfPass = new TreeMap<>();
        long sent = 0;
        long received = 0;
        List<RecordedEvent> events = new ArrayList<>(RecordingFile.readAllEvents(file));
        events.sort(Comparator.comparing(RecordedEvent::getEndTime));
        for (RecordedEvent event : events) {
            if (event.getEventType().getName().equals("penstock.Op")) {
                String pass =
                        "rank %d, pass %d".formatted(event.getInt("rank"), event.getLong("pass"));
                opsOfPass.computeIfAbsent(pass, _ -> new ArrayList<>()).add(event.getString("op"));
            } else if (event.getBoolean("sent")) {
                sent += event.getLong("bytes");
            } else {
                received += event.getLong("bytes");
            }
        }
        assertThat(opsOfPass).hasSize(2 * pipeline.losses().size());
        opsOfPass.forEach(
                (pass, ops) ->
                        assertThat(ops)
                                .as(pass)
                                .isEqualTo(
                                        program(pipeline.plan().training(), pass.charAt(5) - '0')));
        assertThat(sent).isPositive().isEqualTo(received);
    }

    private static List<String> program(Schedule schedule, int rank) {
        return schedule.program(rank).ops().stream()
                .map(op -> OpText.print(op, schedule.shape()))
                .toList();
    }
}
