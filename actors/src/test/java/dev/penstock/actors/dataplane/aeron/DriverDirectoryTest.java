package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What killed processes left is removed, and nothing else. */
class DriverDirectoryTest {
    private static final int NOBODY = 65_534;

    @TempDir Path memory;

    /** As a process of this user leaves it that was killed; no process has so high a number. */
    private Path left(String run) throws IOException {
        Path outer = memory.resolve("penstock-" + run + "-999999999-17");
        Files.createDirectory(
                outer,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        Files.createDirectory(outer.resolve("driver"));
        Files.writeString(outer.resolve("driver/cnc.dat"), "");
        return outer;
    }

    private void sweep() {
        DriverDirectory.delete(DriverDirectory.create(memory, "next"));
    }

    @Test
    void whatAKilledProcessLeftIsRemoved() throws IOException {
        Path left = left("killed");

        sweep();

        assertThat(left).doesNotExist();
        assertThat(memory).isEmptyDirectory();
    }

    @Test
    void whatOthersCouldChangeMeanwhileStays() throws IOException {
        Path open = left("open");
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));

        sweep();

        assertThat(open.resolve("driver/cnc.dat")).exists();
    }

    @Test
    void whatIsElsewhereIsNotFollowed() throws IOException {
        Path elsewhere = left("elsewhere");
        Path victim = memory.resolve("victim");
        Files.move(elsewhere, victim);
        Files.createSymbolicLink(elsewhere, victim);

        sweep();

        assertThat(victim.resolve("driver/cnc.dat")).exists();
    }

    @Test
    void whatAnotherUserMadeStays() throws IOException {
        assumeTrue(
                Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0),
                "only root can make a directory for another user");
        Path foreign = left("foreign");
        Files.setAttribute(foreign, "unix:uid", NOBODY);

        sweep();

        assertThat(foreign.resolve("driver/cnc.dat")).exists();
    }
}
