package dev.penstock.actors.dataplane.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.DriverGoneException;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.SharedMemoryFullException;
import io.aeron.CncFileDescriptor;
import io.aeron.ErrorCode;
import io.aeron.exceptions.RegistrationException;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class DriverStartTest {
    @TempDir private Path parent;

    private DriverSettings settings() {
        return new DriverSettings(parent, "run", 64 * 1024, 2);
    }

    @Test
    void aDriverTakesNoMoreSharedMemoryThanTheBudgetSays() throws IOException {
        try (EmbeddedDriver driver = EmbeddedDriver.start(settings());
                Stream<Path> files = Files.walk(driver.directory())) {
            long bytes = files.map(Path::toFile).filter(File::isFile).mapToLong(File::length).sum();
            assertThat(bytes).isBetween(1L << 20, SharedMemoryBudget.DRIVER_BYTES);
        }
    }

    @Test
    void anEmbeddedDriverLeavesNothingBehind() {
        try (EmbeddedDriver driver = EmbeddedDriver.start(settings())) {
            assertThat(driver.directory()).isDirectory();
        }

        assertThat(parent).isEmptyDirectory();
    }

    @Test
    void driversOfTheSameRunHaveTheirOwnDirectories() {
        try (EmbeddedDriver first = EmbeddedDriver.start(settings());
                EmbeddedDriver second = EmbeddedDriver.start(settings())) {
            assertThat(second.directory()).isNotEqualTo(first.directory());
        }
    }

    @Test
    void memoryLeftByAKilledProcessIsRemovedByTheNext() throws Exception {
        Path left = Files.createDirectories(parent.resolve("penstock-run-999999999-1/driver"));
        Files.writeString(left.resolve("loss-report.dat"), "x");

        EmbeddedDriver.start(settings()).close();

        assertThat(parent).isEmptyDirectory();
    }

    /** Its first file is there, and all zeros. */
    @Test
    void memoryLeftByAProcessThatWasKilledWhileItsDriverStartedStopsNobody() throws Exception {
        Path old = started("penstock-run-999999999-1");
        Path young = started("penstock-run-999999999-2");
        Path outer = parent.resolve("penstock-run-999999999-1");
        Files.setLastModifiedTime(outer, FileTime.from(Instant.now().minusSeconds(60)));

        EmbeddedDriver.start(settings()).close();

        assertThat(old).doesNotExist();
        assertThat(young).exists();
    }

    private Path started(String name) throws IOException {
        Path driver = Files.createDirectories(parent.resolve(name).resolve("driver"));
        return Files.write(driver.resolve(CncFileDescriptor.CNC_FILE), new byte[64 * 1024]);
    }

    @Test
    void aDriverProcessThatIsNotReadyInTimeIsEndedAndExplained() {
        List<String> deaths = new ArrayList<>();

        assertThatThrownBy(
                        () ->
                                MediaDriverProcess.start(
                                        settings(), Duration.ofMillis(1), deaths::add))
                .isInstanceOf(DataPlaneException.class)
                .hasMessageContaining("is not ready after PT0.001S");

        assertThat(deaths).isEmpty();
        assertThat(parent).isEmptyDirectory();
    }

    @Test
    void tooLittleSharedMemoryIsSaidBeforeAnythingStarts() {
        long free = 40L << 20;

        assertThatThrownBy(() -> SharedMemoryBudget.require(parent, 8 << 20, 4, free))
                .isInstanceOf(SharedMemoryFullException.class)
                .hasMessageContaining("wants 119554048 bytes")
                .hasMessageContaining("free are 41943040")
                .hasMessageContaining("lower data-plane.term-length to 1048576 bytes");
    }

    @Test
    void aLogForWhichThereIsNoRoomIsToldFromOtherRefusals() {
        var full = new RegistrationException(7, 0, ErrorCode.STORAGE_SPACE, "insufficient storage");
        var other = new RegistrationException(7, 0, ErrorCode.INVALID_CHANNEL, "no such interface");

        assertThat(AeronDataPlane.cannotOpen(2, full))
                .isInstanceOf(SharedMemoryFullException.class)
                .hasMessageContainingAll("open rank 2", "insufficient storage")
                .message()
                .matches(SharedMemoryFullException::isReasonOf);
        assertThat(AeronDataPlane.cannotOpen(2, other))
                .isNotInstanceOf(SharedMemoryFullException.class)
                .hasMessageContainingAll("open rank 2", "no such interface");
    }

    /** As {@code penstock chaos} has it, or a limit of the system. */
    @Test
    @EnabledOnOs(OS.LINUX)
    void aLogThatMayNotGrowHasNoRoom() throws Exception {
        try (MediaDriverProcess driver =
                        MediaDriverProcess.start(settings(), Duration.ofSeconds(30), _ -> {});
                AeronDataPlane plane =
                        AeronDataPlane.start(AeronSettings.ipc(driver.directory(), 1))) {
            assertThat(noFileOfMayGrow(driver.pid()).waitFor()).isZero();

            assertThatThrownBy(
                            () ->
                                    plane.open(
                                            0,
                                            List.of(),
                                            List.of(new Outbound(TwoRanks.FORWARD, 1, 1)),
                                            new RecordingListener()))
                    .isInstanceOf(SharedMemoryFullException.class);
        }
    }

    private static Process noFileOfMayGrow(long pid) throws IOException {
        return new ProcessBuilder("prlimit", "--pid", Long.toString(pid), "--fsize=1").start();
    }

    @Test
    void noDriverInADirectoryIsSaidInWords() {
        assertThatThrownBy(() -> AeronDataPlane.start(AeronSettings.ipc(parent, 1)))
                .isInstanceOf(DriverGoneException.class)
                .hasMessageContaining("no media driver answers in " + parent);
    }

    @Test
    void impossibleSettingsAreListedAtOnce() {
        AeronSettings settings = AeronSettings.ipc(parent, 1);

        assertThatThrownBy(() -> settings.withTermLength(3_000_000))
                .hasMessageContaining("term length: expected a power of two");
        assertThatThrownBy(() -> settings.withMtu(100))
                .hasMessageContaining("mtu: expected a multiple of 32 from 512 to 65504 bytes");
        assertThatThrownBy(() -> settings.inbox(5000, 0))
                .hasMessageContaining("rank: expected 0 to 4095, got 5000");
    }
}
