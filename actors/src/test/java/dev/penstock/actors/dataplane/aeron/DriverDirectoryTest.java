package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
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
        makeOld(outer);
        return outer;
    }

    private static void makeOld(Path directory) throws IOException {
        Files.setLastModifiedTime(directory, FileTime.from(Instant.now().minusSeconds(60)));
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

    /** Removed in part by another process that was killed in turn, or before its driver began. */
    @Test
    void whatAKilledProcessLeftWithoutADriverIsRemoved() throws IOException {
        Path left = left("begun");
        Files.delete(left.resolve("driver/cnc.dat"));
        Files.delete(left.resolve("driver"));
        makeOld(left);

        sweep();

        assertThat(left).doesNotExist();
    }

    /** Its number may be of a process in another container. */
    @Test
    void aDirectoryWhoseDriverIsAboutToStartStays() throws IOException {
        Path begun = left("begun");
        Files.delete(begun.resolve("driver/cnc.dat"));
        Files.delete(begun.resolve("driver"));

        sweep();

        assertThat(begun).exists();
    }

    @Test
    void severalProcessesRemoveTheSameLeftoversAtATime() throws Exception {
        for (int run = 0; run < 200; run++) {
            left("killed-" + run);
        }
        var sweeps = new ArrayList<Callable<Void>>();
        for (int process = 0; process < 4; process++) {
            sweeps.add(
                    () -> {
                        sweep();
                        return null;
                    });
        }

        try (var threads = Executors.newFixedThreadPool(sweeps.size())) {
            for (Future<Void> each : threads.invokeAll(sweeps)) {
                each.get();
            }
        }

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
