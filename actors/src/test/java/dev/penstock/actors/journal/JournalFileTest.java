package dev.penstock.actors.journal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.PlanRevision;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JournalFileTest {
    private static final List<JournalRecord> RECORDS =
            List.of(
                    new JournalRecord.Began("a run of \"mine\"", "c0ffee", 4, 1, 0),
                    new JournalRecord.Committed(1, 1, 0.1, 3.25, 1e-300),
                    new JournalRecord.Published(1),
                    new JournalRecord.EpochRaised(2, "rank 2 died: kill -9, after step 1"),
                    new JournalRecord.Counted(1_790_000_000_000L, "rank 2 died: kill -9"),
                    new JournalRecord.RolledBack(2, 1),
                    new JournalRecord.Committed(2, 2, Double.MIN_VALUE, -0.0, 7),
                    new JournalRecord.Committed(2, 3, OptionalDouble.empty(), 4, Double.NaN),
                    new JournalRecord.Skipped(2, 3),
                    new JournalRecord.Revised(
                            new PlanRevision(
                                    1, List.of("a=[1, 2]", "b=two words"), "0a", "it is slow")),
                    new JournalRecord.LossScaled(0, "0x1.0p16 0 2 0 0"),
                    new JournalRecord.Placed(2, "a worker/1/4711"),
                    new JournalRecord.Failed(3, "it did not work"),
                    new JournalRecord.Ended(2));

    @TempDir Path folder;

    private Path written() {
        Path file = folder.resolve("journal.txt");
        try (var journal = JournalFile.open(file)) {
            RECORDS.forEach(journal::append);
        }
        return file;
    }

    @Test
    void whatWasWrittenIsReadBack() {
        assertThat(JournalFile.read(written())).isEqualTo(RECORDS);
    }

    /** As after a disk that was full for a while. */
    @Test
    void whatAFileRefusedIsWrittenWhenItTakesRecordsAgain() throws IOException {
        Path file = folder.resolve("journal.txt");
        Path aside = folder.resolve("aside.txt");
        try (var journal = JournalFile.open(file)) {
            journal.append(RECORDS.get(0));
            Thread.currentThread().interrupt(); // fails the next write and closes the channel
            journal.append(RECORDS.get(1));
            assertThat(Thread.interrupted()).isTrue();
            Files.move(file, aside);
            Files.createDirectory(file);
            RECORDS.subList(2, 6).forEach(journal::append);
            journal.append(new JournalRecord.Committed(2, 1, 1, 1, 1));
            Files.delete(file);
            Files.writeString(aside, "half a rec", StandardOpenOption.APPEND);
            Files.move(aside, file);

            RECORDS.subList(6, RECORDS.size()).forEach(journal::append);
        }

        assertThat(JournalFile.read(file)).isEqualTo(RECORDS);
    }

    @Test
    void aRunWithoutAJournalHasNoRecords() {
        assertThat(JournalFile.read(folder.resolve("none"))).isEmpty();
    }

    @Test
    void aTornEndIsIgnoredWhereverItIsTorn() throws IOException {
        Path file = written();
        byte[] whole = Files.readAllBytes(file);
        for (int length = 0; length < whole.length; length++) {
            Files.write(file, Arrays.copyOf(whole, length));
            List<JournalRecord> read = JournalFile.read(file);
            assertThat(RECORDS.subList(0, read.size())).isEqualTo(read);
            long lines =
                    new String(whole, 0, length, java.nio.charset.StandardCharsets.UTF_8)
                            .chars()
                            .filter(c -> c == '\n')
                            .count();
            assertThat(read).as("torn after %d bytes", length).hasSize((int) lines);
        }
    }

    @Test
    void aFlippedBitEndsTheJournalThere() throws IOException {
        Path file = written();
        byte[] whole = Files.readAllBytes(file);
        for (int at = 0; at < whole.length; at++) {
            byte[] damaged = whole.clone();
            damaged[at] ^= 1;
            Files.write(file, damaged);
            List<JournalRecord> read = JournalFile.read(file);
            assertThat(read).as("bit flipped in byte %d", at).hasSizeLessThan(RECORDS.size());
            assertThat(RECORDS.subList(0, read.size())).isEqualTo(read);
        }
    }

    @Test
    void afterATornEndItGoesOnWithWholeRecords() throws IOException {
        Path file = written();
        byte[] whole = Files.readAllBytes(file);
        Files.write(file, Arrays.copyOf(whole, whole.length - 3));

        try (var journal = JournalFile.open(file)) {
            journal.append(new JournalRecord.Ended(7));
        }

        assertThat(JournalFile.read(file))
                .startsWith(RECORDS.subList(0, RECORDS.size() - 1).toArray(JournalRecord[]::new))
                .endsWith(new JournalRecord.Ended(7))
                .hasSize(RECORDS.size());
    }

    /** As a supervisor that stood still for a while and was replaced. */
    @Test
    void whatAReplacedSupervisorWritesNobodyReadsAndItIsToldSo() throws IOException {
        Path file = folder.resolve("journal.txt");
        try (var replaced = JournalFile.open(file)) {
            replaced.append(RECORDS.get(0));
            try (var successor = JournalFile.open(file)) {
                expectTaken(replaced, new JournalRecord.Committed(1, 1, 1, 1, 1));
                successor.append(new JournalRecord.EpochRaised(2, "the first was silent"));
                Thread.currentThread().interrupt(); // has it open its file again
                expectTaken(replaced, new JournalRecord.Committed(1, 2, 1, 1, 1));
                assertThat(Thread.interrupted()).isTrue();
                expectTaken(replaced, new JournalRecord.Ended(2));
                successor.append(new JournalRecord.Committed(2, 1, 1, 1, 1));
            }
        }

        assertThat(JournalFile.read(file))
                .containsExactly(
                        RECORDS.get(0),
                        new JournalRecord.EpochRaised(2, "the first was silent"),
                        new JournalRecord.Committed(2, 1, 1, 1, 1));
    }

    private static void expectTaken(JournalFile journal, JournalRecord record) {
        assertThatThrownBy(() -> journal.append(record))
                .isInstanceOf(JournalTakenException.class)
                .hasMessageContaining("another supervisor has taken the run up");
    }

    @Test
    void linesBehindADamagedOneArePutAside() throws IOException {
        Path file = written();
        String whole = Files.readString(file);
        Files.writeString(file, whole.replaceFirst("epoch 2", "epoch 3"));

        assertThat(JournalFile.behindDamage(file).orElseThrow())
                .isEqualTo(RECORDS.subList(4, RECORDS.size()));
        JournalFile.open(file).close();

        assertThat(JournalFile.read(file)).isEqualTo(RECORDS.subList(0, 3));
        assertThat(JournalFile.behindDamage(file)).isEmpty();
        assertThat(Files.readString(file) + Files.readString(folder.resolve("journal.txt.damaged")))
                .isEqualTo(whole.replaceFirst("epoch 2", "epoch 3"));
    }

    @Test
    void aLongJournalIsShortenedWithACheckpointAndSaysTheSame() throws IOException {
        Path file = folder.resolve("journal.txt");
        List<JournalRecord> all = new ArrayList<>();
        try (var journal = JournalFile.open(file, 2_000)) {
            var began = new JournalRecord.Began("run", "hash", 2, 1, 0);
            var counted = new JournalRecord.Counted(12, "rank 1 died");
            for (JournalRecord record : List.of(began, counted)) {
                journal.append(record);
                all.add(record);
            }
            for (int step = 1; step <= 500; step++) {
                var committed = new JournalRecord.Committed(1, step, 1, 0.5, 2);
                journal.append(committed);
                all.add(committed);
                if (step % 10 == 0) {
                    journal.append(new JournalRecord.Published(step));
                    all.add(new JournalRecord.Published(step));
                }
                assertThat(JournalledRun.of(JournalFile.read(file)))
                        .isEqualTo(JournalledRun.of(all));
            }
        }

        assertThat(Files.size(file)).isLessThan(3_000);
    }
}
