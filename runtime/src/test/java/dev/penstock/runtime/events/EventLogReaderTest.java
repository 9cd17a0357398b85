package dev.penstock.runtime.events;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankGrid;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/** What was written is read again, however the file was cut. */
class EventLogReaderTest {
    private static final TensorMesh MESH = new TensorMesh(TensorMesh.Kind.PLANE, 2, 2, 1);

    private static final List<RunEvent> EVENTS =
            List.of(
                    new RunEvent.Began(
                            1,
                            RunEvent.VERSION,
                            "a \"name\" <b>\n",
                            0,
                            9,
                            32,
                            1000,
                            "schedule",
                            new RankGrid(2, 4, 1, 3, List.of(), MESH),
                            List.of(5L, 6L),
                            "run { }",
                            Map.of("host", "h"),
                            ""),
                    new RunEvent.Opened(2, List.of("cpu"), "kernels"),
                    new RunEvent.Stepped(
                            3,
                            1,
                            Double.NaN,
                            Double.POSITIVE_INFINITY,
                            1e-3,
                            768,
                            42,
                            0.25,
                            0.2,
                            Map.of("forward", List.of(7L)),
                            List.of()),
                    new RunEvent.Evaluated(4, 1, 5.5),
                    new RunEvent.Saved(5, 1, 1 << 20, 99),
                    new RunEvent.Verified(5, 1, false, 7, "a file is short"),
                    new RunEvent.Members(
                            5,
                            List.of(
                                    new RunEvent.Members.Member(0, "worker-1", 4711, "0.1"),
                                    new RunEvent.Members.Member(-1, "spare process", 4712, ""))),
                    new RunEvent.Leases(5, List.of(120L, 0L)),
                    new RunEvent.Links(
                            5,
                            1,
                            List.of(new RunEvent.Links.Link(0, 1, 1L << 40, 11, 12, 13, 14, 15))),
                    new RunEvent.Recovered(6, "told", 2, List.of(1), "mirror", 10, 20, 0, 1),
                    new RunEvent.Noted(7, RunEvent.Noted.Kind.STALL, "who waits"),
                    new RunEvent.Ended(8, RunEvent.Ended.Outcome.FAILED, 1, "why"));

    @TempDir Path folder;

    @Test
    void everyKindOfLineIsReadAsItWasWritten() throws IOException {
        Path file = write();

        assertThat(read(file)).isEqualTo(EVENTS);
    }

    @Test
    void opTimesKeepTheirNumbers() throws IOException {
        Path file = folder.resolve("events.jsonl");
        var rank = new RunEvent.OpTimes.Rank(new int[] {0, 5}, new int[] {4, 9}, 10, 12);
        try (var lines = new LineAppender(file, InstantSource.system())) {
            lines.append(new RunEvent.OpTimes(1, 3, List.of(rank)));
        }

        assertThat(read(file))
                .singleElement()
                .usingRecursiveComparison()
                .isEqualTo(new RunEvent.OpTimes(1, 3, List.of(rank)));
    }

    /** Whoever reads on would stumble over what is not there. */
    @Test
    void aLineThatLacksAFieldIsPassedOverAndOneFromBeforeCollectivesIsNot() throws IOException {
        Path file = folder.resolve("events.jsonl");
        Files.writeString(
                file,
                """
                {"type":"ops","time":1,"step":3}
                {"type":"ops","time":1,"step":4,"ranks":[{"starts":[0],"updateStart":2,"updateEnd":3}]}
                {"type":"members","time":1,"members":null}
                {"type":"ops","time":1,"step":5,"ranks":[{"starts":[0],"ends":[1],"updateStart":2,"updateEnd":3}]}
                """);

        var rank = new RunEvent.OpTimes.Rank(new int[] {0}, new int[] {1}, 2, 3);
        assertThat(read(file))
                .singleElement()
                .usingRecursiveComparison()
                .isEqualTo(new RunEvent.OpTimes(1, 5, List.of(rank)));
    }

    /** At every byte: what is whole before the cut is told, and the rest when it comes. */
    @Test
    void aGridFromBeforeStagesHadDifferentShardsHasEqualOnes() {
        String line = new String(RunEventJson.write(EVENTS.getFirst()), StandardCharsets.UTF_8);
        String before = line.replace(",\"shards\":[]", "");
        assertThat(before).isNotEqualTo(line);
        byte[] bytes = before.getBytes(StandardCharsets.UTF_8);

        assertThat(RunEventJson.read(bytes, 0, bytes.length)).contains(EVENTS.getFirst());
    }

    @Test
    void aFileThatIsCutAnywhereTellsItsWholeLinesAndGoesOnWhenTheRestCame() throws IOException {
        byte[] whole = Files.readAllBytes(write());
        Path file = folder.resolve("cut.jsonl");
        for (int cut = 0; cut <= whole.length; cut++) {
            Files.write(file, Arrays.copyOf(whole, cut));
            var reader = new EventLogReader(file);
            List<RunEvent> found = new ArrayList<>();
            reader.poll(found::add);
            assertThat(EVENTS.subList(0, found.size())).isEqualTo(found);
            int after = found.size();

            Files.write(
                    file, Arrays.copyOfRange(whole, cut, whole.length), StandardOpenOption.APPEND);
            reader.poll(found::add);

            assertThat(found)
                    .as("cut at %d, where %d lines were whole", cut, after)
                    .isEqualTo(EVENTS);
        }
    }

    /** A process that died in the middle of a line; the next one appends. */
    @Test
    void whatFollowsATornLineIsNotLostWithIt() throws IOException {
        Path file = write();
        byte[] whole = Files.readAllBytes(file);
        Files.write(file, Arrays.copyOf(whole, whole.length - 5));
        try (var lines = new LineAppender(file, InstantSource.system())) {
            lines.append(EVENTS.get(1));
        }

        List<RunEvent> expected = new ArrayList<>(EVENTS.subList(0, EVENTS.size() - 1));
        expected.add(EVENTS.get(1));
        assertThat(read(file)).isEqualTo(expected);
    }

    @Test
    void linesOfLaterVersionsAndRubbishArePassedOver() throws IOException {
        Path file = folder.resolve("events.jsonl");
        Files.writeString(
                file,
                """
                {"type":"of tomorrow","time":1}
                not json
                {"type":"evaluation","time":4,"step":1,"loss":5.5,"unknown":[1,2]}
                []
                """);

        assertThat(read(file)).containsExactly(new RunEvent.Evaluated(4, 1, 5.5));
    }

    @Test
    void aMissingFileHasNoLines() throws IOException {
        assertThat(read(folder.resolve("none"))).isEmpty();
    }

    @Test
    void aFolderThatIsGoneCostsLinesAndNothingElse() {
        try (var lines =
                new LineAppender(folder.resolve("no/such/folder"), InstantSource.system())) {
            for (int i = 0; i < 5_000; i++) {
                lines.append(EVENTS.get(1));
            }
        }
    }

    /**
     * Every write fails as on a full disk; nobody waits, nothing is thrown, and it is said once.
     */
    @Test
    void aFullDiskCostsLinesAndIsReportedOnce() {
        Path full = Path.of("/dev/full");
        assumeTrue(Files.exists(full), "this system has no /dev/full");
        var said = new ListAppender<ILoggingEvent>();
        var logger = (Logger) LoggerFactory.getLogger(LineAppender.class);
        said.start();
        logger.addAppender(said);
        try (var lines = new LineAppender(full, InstantSource.system())) {
            for (int i = 0; i < 5_000; i++) {
                lines.append(EVENTS.get(1));
            }
        } finally {
            logger.detachAppender(said);
        }

        assertThat(said.list)
                .extracting(ILoggingEvent::getFormattedMessage)
                .singleElement()
                .asString()
                .contains("cannot write to /dev/full", "training continues");
    }

    private Path write() {
        Path file = folder.resolve("whole.jsonl");
        try (var lines = new LineAppender(file, InstantSource.system())) {
            EVENTS.forEach(lines::append);
        }
        return file;
    }

    private static List<RunEvent> read(Path file) throws IOException {
        List<RunEvent> found = new ArrayList<>();
        new EventLogReader(file).poll(found::add);
        return found;
    }
}
