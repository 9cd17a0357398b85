package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import io.aeron.Aeron;
import io.aeron.AeronCounters;
import io.aeron.CncFileDescriptor;
import io.aeron.CommonContext;
import io.aeron.exceptions.AeronException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A directory of its own for each media driver, in shared memory: {@code
 * penstock-RUN-PID-NUMBER/driver}. The outer one is for this user's eyes only, since tensors lie in
 * it, and is never taken over: starting a driver in the directory of a live one would break both.
 */
final class DriverDirectory {
    private static final Logger LOG = LoggerFactory.getLogger(DriverDirectory.class);
    private static final Pattern NAME = Pattern.compile("penstock-(.*)-(\\d+)-\\d+");
    private static final long HEARTBEAT_MS = 10_000;

    private DriverDirectory() {}

    /** Shared memory of this machine, or the temporary directory where there is none. */
    static Path sharedMemory() {
        Path memory = Path.of("/dev/shm");
        return Files.isDirectory(memory) && Files.isWritable(memory)
                ? memory
                : Path.of(System.getProperty("java.io.tmpdir", "/tmp"));
    }

    /** Makes a directory that no other driver has, after removing those of dead processes. */
    static Path create(Path parent, String run) {
        sweep(parent);
        String prefix =
                "penstock-%s-%d-"
                        .formatted(
                                run.replaceAll("[^A-Za-z0-9_.]", "_"),
                                ProcessHandle.current().pid());
        try {
            return Files.createTempDirectory(parent, prefix).resolve("driver");
        } catch (IOException e) {
            throw new DataPlaneException(
                    "cannot make a directory for the media driver in %s: %s".formatted(parent, e),
                    e);
        }
    }

    /** Removes a directory made by {@link #create}, with everything in it. */
    static void delete(Path directory) {
        Path outer = directory.getParent();
        if (outer == null) {
            throw new IllegalArgumentException("not a driver's directory: " + directory);
        }
        deleteTree(outer);
    }

    /** Several processes may do this with a directory at a time: what is gone is no failure. */
    private static void deleteTree(Path root) {
        try {
            Files.walkFileTree(root, new Removal());
        } catch (IOException e) {
            LOG.warn("cannot remove {}; remove it by hand to free its memory", root, e);
        }
    }

    private static final class Removal extends SimpleFileVisitor<Path> {
        @Override
        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult visitFileFailed(Path file, IOException failure) throws IOException {
            if (failure instanceof NoSuchFileException) {
                return FileVisitResult.CONTINUE;
            }
            throw failure;
        }

        @Override
        public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException failure)
                throws IOException {
            if (failure != null && !(failure instanceof NoSuchFileException)) {
                throw failure;
            }
            Files.deleteIfExists(directory);
            return FileVisitResult.CONTINUE;
        }
    }

    /**
     * A killed process cannot clean up after itself; the next one does. A directory counts as dead
     * only if its process is gone and its driver shows no heartbeat for ten seconds, since
     * processes of another container may share the memory but not the process numbers. What another
     * user made, or could change while it is removed, stays: its entries may lead to this user's
     * files.
     */
    private static void sweep(Path parent) {
        try (DirectoryStream<Path> found = Files.newDirectoryStream(parent, "penstock-*")) {
            for (Path directory : found) {
                Matcher name = NAME.matcher(directory.getFileName().toString());
                if (name.matches() && isPrivate(directory) && isDead(directory, name)) {
                    LOG.info("removing {}, left by a process that was killed", directory);
                    deleteTree(directory);
                }
            }
        } catch (IOException e) {
            LOG.warn("cannot look for old driver directories in {}", parent, e);
        }
    }

    /** Whether it is this user's, and nobody else can write to it. */
    private static boolean isPrivate(Path directory) {
        try {
            return Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
                    && Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS)
                            .equals(Files.getAttribute(Path.of("/proc/self"), "unix:uid"))
                    && !PosixFilePermissions.toString(Files.getPosixFilePermissions(directory))
                            .matches("....w....|.......w.");
        } catch (IOException | UnsupportedOperationException e) {
            LOG.debug("{}: whose it is cannot be seen", directory, e);
            return false;
        }
    }

    /** Whose driver it is, for people. */
    static String owner(Path directory) {
        Path outer = directory.getParent();
        Matcher name = NAME.matcher(outer == null ? "" : String.valueOf(outer.getFileName()));
        return name.matches()
                ? "run %s (process %s)".formatted(name.group(1), name.group(2))
                : "the media driver in " + directory;
    }

    /**
     * Another driver beside this one, of this user, that has a socket on a UDP port. Asks each, so
     * it is for explanations only.
     */
    static Optional<Path> listeningOn(int port, Path own) {
        Path parent = own.resolve("../..").normalize();
        try (DirectoryStream<Path> found = Files.newDirectoryStream(parent, "penstock-*")) {
            for (Path outer : found) {
                Path driver = outer.resolve("driver");
                if (!driver.equals(own) && Files.isReadable(outer) && hasSocket(driver, port)) {
                    return Optional.of(driver);
                }
            }
        } catch (IOException e) {
            LOG.debug("cannot look for drivers in {}", parent, e);
        }
        return Optional.empty();
    }

    private static boolean hasSocket(Path driver, int port) {
        if (!beats(driver)) {
            return false;
        }
        var sockets = new ArrayList<String>();
        try (Aeron aeron =
                Aeron.connect(new Aeron.Context().aeronDirectoryName(driver.toString()))) {
            aeron.countersReader()
                    .forEach(
                            (_, type, _, label) -> {
                                if (type == AeronCounters.DRIVER_LOCAL_SOCKET_ADDRESS_STATUS_TYPE_ID
                                        && label.endsWith(":" + port)) {
                                    sockets.add(label);
                                }
                            });
        } catch (AeronException e) {
            LOG.debug("the driver in {} does not answer", driver, e);
        }
        return !sockets.isEmpty();
    }

    private static boolean isDead(Path directory, Matcher name) {
        Path driver = directory.resolve("driver");
        return ProcessHandle.of(Long.parseLong(name.group(2))).isEmpty()
                && (Files.isDirectory(driver) || isOld(directory))
                && !beats(driver);
    }

    /**
     * Whether a driver may be alive there. One that was killed while it made its files never had a
     * heartbeat: Aeron would wait ten seconds for the first and then throw.
     */
    private static boolean beats(Path driver) {
        Path facts = driver.resolve(CncFileDescriptor.CNC_FILE);
        if (Files.exists(facts) && !isReady(facts)) {
            return !isOld(driver.resolve(".."));
        }
        try {
            return CommonContext.isDriverActive(driver.toFile(), HEARTBEAT_MS, LOG::debug);
        } catch (AeronException e) {
            LOG.debug("whether {} has a driver cannot be seen", driver, e); // as of other versions
            return true;
        }
    }

    /** A driver writes the version, which is never 0, when all else is there. */
    private static boolean isReady(Path facts) {
        ByteBuffer version = ByteBuffer.allocate(Integer.BYTES);
        try (FileChannel file = FileChannel.open(facts)) {
            return file.read(version, CncFileDescriptor.cncVersionOffset(0)) == Integer.BYTES
                    && version.getInt(0) != 0;
        } catch (IOException e) {
            LOG.debug("{} cannot be read", facts, e);
            return false;
        }
    }

    /** Where there is nothing yet, a driver may be about to start. */
    private static boolean isOld(Path path) {
        return path.toFile().lastModified() < System.currentTimeMillis() - HEARTBEAT_MS;
    }
}
