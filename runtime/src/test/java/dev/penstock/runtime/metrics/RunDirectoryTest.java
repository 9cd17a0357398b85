package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunDirectoryTest {
    @TempDir private Path folder;

    @Test
    void runsOfOneNameAreNumbered() {
        RunDirectory first = RunDirectory.createUnder(folder.resolve("runs"), "quickstart");
        RunDirectory second = RunDirectory.createUnder(folder.resolve("runs"), "quickstart");

        assertThat(first.path()).isEqualTo(folder.resolve("runs/quickstart-1"));
        assertThat(second.path()).isEqualTo(folder.resolve("runs/quickstart-2"));
        assertThat(second.checkpoints()).isDirectory();
        assertThat(RunDirectory.latestUnder(folder.resolve("runs"), "quickstart")).contains(second);
    }

    @Test
    void aDirectoryBelongsToOneRunAtATime() throws IOException {
        RunDirectory directory = RunDirectory.createUnder(folder, "busy");

        try (var _ = directory.lock()) {
            assertThatThrownBy(directory::lock)
                    .isInstanceOf(RunDirectoryException.class)
                    .hasMessageContaining("is in use by another run");
        }
        directory.lock().close();

        directory.removeIfEmpty();
        assertThat(directory.path()).doesNotExist();
    }

    /** Configurations may hold secrets, and weights are made of data. */
    @Test
    void otherUsersReadNothingInADirectoryThatWasMadeForARun() throws IOException {
        Path byName = RunDirectory.createUnder(folder.resolve("runs"), "private").path();
        Path byPath = RunDirectory.create(folder.resolve("here/mine")).path();

        for (Path made : List.of(byName, byPath)) {
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(made)))
                    .as("%s", made)
                    .isEqualTo("rwx------");
        }
    }

    @Test
    void aDirectoryThatTheUserMadeKeepsItsPermissions() throws IOException {
        Path shared = Files.createDirectory(folder.resolve("shared"));
        Files.setPosixFilePermissions(shared, PosixFilePermissions.fromString("rwxr-xr-x"));

        RunDirectory.create(shared);

        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(shared)))
                .isEqualTo("rwxr-xr-x");
    }

    @Test
    void numbersAreNotComparedAsText() throws IOException {
        Files.createDirectories(folder.resolve("a-9"));
        Files.createDirectories(folder.resolve("a-10"));
        Files.createDirectories(folder.resolve("ab-30"));

        assertThat(RunDirectory.createUnder(folder, "a").path()).isEqualTo(folder.resolve("a-11"));
    }

    @Test
    void aNameCannotLeaveTheFolder() {
        RunDirectory run = RunDirectory.createUnder(folder, "../../etc/passwd; rm -rf *");

        assertThat(run.path().getParent()).isEqualTo(folder);
        assertThat(RunDirectory.createUnder(folder, "..").path())
                .isEqualTo(folder.resolve("run-1"));
    }

    @Test
    void aDirectoryThatHoldsARunIsNotTakenForAnother() throws IOException {
        RunDirectory run = RunDirectory.create(folder.resolve("mine"));
        Files.writeString(run.resolvedConfiguration(), "run {}");

        assertThatThrownBy(() -> RunDirectory.create(folder.resolve("mine")))
                .isInstanceOf(RunDirectoryException.class)
                .hasMessageContaining("already holds a run")
                .hasMessageContaining("--resume");
        assertThat(RunDirectory.open(folder.resolve("mine"))).isEqualTo(run);
    }

    @Test
    void openingWhatIsNoRunSaysWhatIsMissing() {
        assertThatThrownBy(() -> RunDirectory.open(folder))
                .isInstanceOf(RunDirectoryException.class)
                .hasMessageContaining("resolved.conf");
        assertThatThrownBy(() -> RunDirectory.open(folder.resolve("none")))
                .hasMessageContaining("does not exist");
    }

    @Test
    void itIsSaidWhyAPlaceCannotBeWrittenTo() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "");

        assertThat(new RunDirectory(folder.resolve("a/b")).whyNotWritable()).isEmpty();
        assertThat(new RunDirectory(file.resolve("run")).whyNotWritable())
                .contains(file + " is not a folder");
    }

    @Test
    void aFileInTheWayIsSaid() throws IOException {
        Path file = Files.writeString(folder.resolve("runs"), "not a directory");

        assertThatThrownBy(() -> RunDirectory.createUnder(file, "a"))
                .isInstanceOf(RunDirectoryException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContaining("try --run-dir");
    }
}
