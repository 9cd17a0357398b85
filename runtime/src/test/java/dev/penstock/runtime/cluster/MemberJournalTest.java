package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MemberJournalTest {
    @TempDir Path folder;

    @Test
    void remembersTheMembersOfTheLastWrite() {
        var journal = new MemberJournal(folder.resolve("deep/members"));

        assertThat(journal.read()).isEmpty();
        journal.write(List.of("a:1", "b:2"));
        journal.write(List.of("c:3"));

        assertThat(journal.read()).containsExactly("c:3");
    }
}
