package dev.penstock.runtime.events;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The end of a log has the events that a reader of the whole log sees last. */
class EventLogTailTest {
    @TempDir Path folder;
    private Path file;

    @BeforeEach
    void aLogOfSomeHundredSteps() throws IOException {
        file = folder.resolve("events.jsonl");
        RunEventLines.writeRecordedQuickstart(file);
        assertThat(Files.size(file)).isGreaterThan(1 << 17);
    }

    @Test
    void readsNoMoreThanItHasTo() throws IOException {
        List<RunEvent> all = all();

        List<RunEvent> tail = EventLogTail.backTo(file, RunEvent.Ended.class::isInstance);

        assertThat(tail).hasSizeLessThan(all.size());
        assertThat(texts(tail)).isEqualTo(texts(all.subList(all.size() - tail.size(), all.size())));
    }

    @Test
    void readsBackUntilWhatIsSoughtIsThere() throws IOException {
        List<RunEvent> tail = EventLogTail.backTo(file, RunEvent.Began.class::isInstance);

        assertThat(texts(tail)).isEqualTo(texts(all()));
    }

    @Test
    void withoutWhatIsSoughtItHasAll() throws IOException {
        assertThat(EventLogTail.backTo(file, _ -> false)).hasSameSizeAs(all());
    }

    @Test
    void leavesOutALineThatIsStillBeingWritten() throws IOException {
        int before = EventLogTail.backTo(file, _ -> false).size();

        Files.writeString(file, "{\"type\":\"ended\",", StandardOpenOption.APPEND);

        assertThat(EventLogTail.backTo(file, _ -> false)).hasSize(before);
    }

    @Test
    void ofNoFileThereAreNoEvents() throws IOException {
        assertThat(EventLogTail.backTo(folder.resolve("none"), _ -> true)).isEmpty();
    }

    private List<RunEvent> all() throws IOException {
        List<RunEvent> all = new ArrayList<>();
        new EventLogReader(file).poll(all::add);
        return all;
    }

    /** Records with arrays are equal if they are written alike. */
    private static List<String> texts(List<RunEvent> events) {
        return events.stream()
                .map(event -> new String(RunEventJson.write(event), StandardCharsets.UTF_8))
                .toList();
    }
}
