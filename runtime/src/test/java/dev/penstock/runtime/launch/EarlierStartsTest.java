package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.supervisor.RunBeginning;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EarlierStartsTest {
    @TempDir Path folder;

    private final List<String> lines = new ArrayList<>();

    @Test
    void committedStepsBeyondTheCheckpointAreNamed() {
        journal(began(1), commit(35), commit(36), commit(37));

        assertThat(told(OptionalLong.of(35)))
                .containsExactly(
                        "steps 36-37 had been committed; they are done again from checkpoint 35");
    }

    @Test
    void oneStepIsOneStep() {
        journal(began(1), commit(1));

        assertThat(told(OptionalLong.empty()))
                .containsExactly("step 1 had been committed; it is done again from the beginning");
    }

    @Test
    void nothingIsSaidWhereNothingIsLost() {
        journal(began(1), commit(1), new JournalRecord.Ended(1));

        assertThat(told(OptionalLong.of(1))).isEmpty();
    }

    @Test
    void theNextStartHasAnEpochThatNoneHad() {
        assertThat(EarlierStarts.in(folder).next()).isEqualTo(new RunBeginning.New(1));
        journal(began(1), new JournalRecord.EpochRaised(4, "a death"));

        assertThat(EarlierStarts.in(folder).next()).isEqualTo(new RunBeginning.New(5));
    }

    @Test
    void aDamagedJournalIsOneLineAndTheRestIsUsed() throws IOException {
        journal(began(3), commit(1));
        Files.writeString(
                folder.resolve(JournalFile.NAME), "nonsense\n", StandardOpenOption.APPEND);

        assertThat(told(OptionalLong.of(1)))
                .singleElement()
                .asString()
                .contains(JournalFile.NAME, "is damaged");
        assertThat(EarlierStarts.in(folder).next()).isEqualTo(new RunBeginning.New(4));
    }

    @Test
    void anUnreadableJournalKeepsNobodyFromGoingOn() throws IOException {
        Files.createDirectory(folder.resolve(JournalFile.NAME));

        assertThat(told(OptionalLong.of(1))).hasSize(1);
        assertThat(EarlierStarts.in(folder).next()).isEqualTo(new RunBeginning.New(1));
    }

    @Test
    void anAbsentJournalIsOneLine() {
        EarlierStarts.in(folder).tellIfAbsent(lines::add);

        assertThat(lines).singleElement().asString().contains(JournalFile.NAME, "none");
    }

    private List<String> told(OptionalLong checkpoint) {
        EarlierStarts.in(folder).tell(checkpoint, lines::add);
        return lines;
    }

    private void journal(JournalRecord... records) {
        try (JournalFile file = JournalFile.open(folder.resolve(JournalFile.NAME))) {
            List.of(records).forEach(file::append);
        }
    }

    private static JournalRecord began(int epoch) {
        return new JournalRecord.Began("run", "hash", 2, epoch, 0);
    }

    private static JournalRecord commit(long step) {
        return new JournalRecord.Committed(1, step, 1, 3, 2);
    }
}
