package dev.penstock.runtime.metrics;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import dev.penstock.runtime.disk.SmallDisk;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/** A full disk costs the lines that it did not take, and no others. */
class LineFileTest {
    private static final Path FULL = Path.of("/dev/full");

    private final ListAppender<ILoggingEvent> logged = new ListAppender<>();

    @TempDir private Path folder;

    @BeforeEach
    void listen() {
        assumeTrue(Files.exists(FULL), "this system has no /dev/full");
        logged.start();
        logger().setLevel(Level.INFO);
        logger().addAppender(logged);
    }

    private Logger logger() {
        return (Logger) LoggerFactory.getLogger("lines of " + folder);
    }

    @Test
    void linesContinueWhenThereIsRoomAgainBehindOneThatCountsWhatIsMissing() throws IOException {
        Path file = Files.createSymbolicLink(folder.resolve("lines"), FULL);

        try (LineFile lines = lines(file)) {
            assertThat(append(lines, "a")).isFalse();
            assertThat(append(lines, "b")).isFalse();
            Files.delete(file); // there is room again
            assertThat(append(lines, "c")).isTrue();
            assertThat(append(lines, "d")).isTrue();
        }

        assertThat(file).content().isEqualTo("missing 2\nc\nd\n");
    }

    @Test
    void whereOnlyTheNoteOfAGapFitsItIsNotWrittenEither() throws Exception {
        try (SmallDisk disk = SmallDisk.below(folder, "size=8k")) {
            String full = "x".repeat(8192 - 21) + "\n"; // 20 bytes are left
            Path file = Files.writeString(disk.path().resolve("lines"), full);
            try (LineFile lines = lines(file)) {
                for (int line = 0; line < 3; line++) {
                    assertThat(append(lines, "a line of 24 characters.")).isFalse();
                }
                assertThat(append(lines, "short")).isTrue();
            }

            assertThat(file).content().isEqualTo(full + "missing 3\nshort\n");
        }
    }

    @Test
    void aGapIsReportedOnceAtEachEnd() throws IOException {
        Path file = Files.createSymbolicLink(folder.resolve("lines"), FULL);

        try (LineFile lines = lines(file)) {
            append(lines, "a");
            append(lines, "b");
            Files.delete(file);
            append(lines, "c");
            append(lines, "d");
        }

        assertThat(logged.list)
                .extracting(ILoggingEvent::getFormattedMessage)
                .satisfiesExactly(
                        begins -> assertThat(begins).contains("cannot write to " + file),
                        ends -> assertThat(ends).contains("is written again; 2 lines"));
    }

    @Test
    @SuppressWarnings("try") // closed, it opens what is there by now
    void aDiskThatFillsAgainAndAgainIsReportedOnceAMinute() throws IOException {
        Path file = folder.resolve("lines");
        var seconds = new AtomicLong();
        try (LineFile lines = lines(file, () -> TimeUnit.SECONDS.toNanos(seconds.get()))) {
            for (int gap = 0; gap < 70; gap++) { // of two lines, one each second
                Files.deleteIfExists(file);
                Files.createSymbolicLink(file, FULL);
                lines.close();
                append(lines, "a");
                append(lines, "b");
                Files.delete(file);
                append(lines, "c");
                seconds.incrementAndGet();
            }
        }

        assertThat(logged.list)
                .extracting(ILoggingEvent::getFormattedMessage)
                .satisfiesExactly(
                        begins -> assertThat(begins).contains("lines lost before: 0"),
                        ends -> assertThat(ends).contains("is written again; 2 lines"),
                        begins -> assertThat(begins).contains("lines lost before: 120"),
                        ends -> assertThat(ends).contains("is written again; 2 lines"));
    }

    @Test
    void aLineFollowsHalfALineOnALineOfItsOwn() throws IOException {
        Path file = Files.writeString(folder.resolve("lines"), "a\nhalf");

        try (LineFile lines = lines(file)) {
            append(lines, "b");
        }

        assertThat(file).content().isEqualTo("a\nhalf\nb\n");
    }

    private LineFile lines(Path file) {
        return lines(file, System::nanoTime);
    }

    private LineFile lines(Path file, LongSupplier nanoTime) {
        return new LineFile(
                file, lost -> ("missing " + lost).getBytes(US_ASCII), logger(), nanoTime);
    }

    private static boolean append(LineFile lines, String line) {
        return lines.append(line.getBytes(US_ASCII));
    }
}
