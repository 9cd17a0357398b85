package dev.penstock.actors.fault;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Optional;

/**
 * One file per event that has happened, in a folder that all processes of the run share: {@code
 * fired-003} holds when it happened. The file and its folder are flushed before the event happens,
 * so that a process that dies of it does not die of it again.
 */
public final class FaultMarkers implements FiredFaults {
    private final Path folder;
    private final InstantSource clock;

    /**
     * @param folder made when the first event happens
     */
    public FaultMarkers(Path folder, InstantSource clock) {
        this.folder = folder;
        this.clock = clock;
    }

    @Override
    public boolean claim(int index, Fault fault) {
        Path file = file(index);
        try {
            if (Files.exists(file)) {
                return false;
            }
            Files.createDirectories(folder);
            String text = "%s %s%n".formatted(clock.instant(), fault.describe());
            try (FileChannel channel = FileChannel.open(file, WRITE, CREATE_NEW)) {
                channel.write(StandardCharsets.UTF_8.encode(text));
                channel.force(true);
            }
            try (FileChannel entries = FileChannel.open(folder, READ)) {
                entries.force(true);
            }
            return true;
        } catch (FileAlreadyExistsException e) {
            return false;
        } catch (IOException e) {
            throw new UncheckedIOException("cannot mark a fault as fired in " + file, e);
        }
    }

    /** When an event happened, if it has. */
    public Optional<Instant> firedAt(int index) {
        Path file = file(index);
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        try {
            String text = Files.readString(file);
            return Optional.of(Instant.parse(text.substring(0, text.indexOf(' '))));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file, e);
        }
    }

    private Path file(int index) {
        return folder.resolve("fired-%03d".formatted(index));
    }
}
