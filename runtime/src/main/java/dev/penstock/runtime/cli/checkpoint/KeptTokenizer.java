package dev.penstock.runtime.cli.checkpoint;

import dev.penstock.runtime.checkpoint.TextsAside;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Copies of a tokenizer's files in the folder of a converted run, which has no configuration to
 * name them: the folder that they came from may move, or be gone.
 */
final class KeptTokenizer {
    private final Path folder;
    private final Map<String, String> texts;

    /** What was not there before. */
    private final List<Path> made = new ArrayList<>();

    /**
     * @param run folder of the run
     * @param texts of the files, by name; may be none
     */
    KeptTokenizer(Path run, Map<String, String> texts) {
        this.folder = new RunDirectory(run).tokenizerFiles();
        this.texts = texts;
    }

    /**
     * Writes the files; those that are there stay as they are.
     *
     * @throws BadInputException if another tokenizer is there; nothing is written then
     * @throws StoredFileException if they cannot be written
     */
    void write() {
        if (texts.isEmpty()) {
            return;
        }
        try {
            requireNoOther();
            makeFolders();
            for (String name : texts.keySet()) {
                Path file = folder.resolve(name);
                if (!Files.exists(file)) {
                    made.add(file);
                }
            }
            TextsAside aside = TextsAside.write(folder, texts);
            try {
                aside.publish();
            } finally {
                aside.discard();
            }
        } catch (IOException e) {
            remove();
            throw StoredFileException.of(folder, "write the tokenizer", e);
        }
    }

    private void requireNoOther() throws IOException {
        if (!Files.isDirectory(folder)) {
            return;
        }
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.sorted().toList()) {
                String name = file.getFileName().toString();
                String text = texts.get(name);
                if (!TextsAside.isAside(name) && (text == null || !holds(file, text))) {
                    throw new BadInputException(
                            "expected a folder without another tokenizer, got %s; try another"
                                    .formatted(file));
                }
            }
        }
    }

    private static boolean holds(Path file, String text) throws IOException {
        return Files.isRegularFile(file)
                && Files.readString(file, StandardCharsets.UTF_8).equals(text);
    }

    private void makeFolders() throws IOException {
        List<Path> missing = new ArrayList<>();
        for (Path each = folder.toAbsolutePath();
                each != null && !Files.exists(each);
                each = each.getParent()) {
            missing.addFirst(each);
        }
        made.addAll(missing);
        Files.createDirectories(folder);
    }

    /** Takes back what was written. */
    void remove() {
        for (Path each : made.reversed()) {
            try {
                Files.deleteIfExists(each);
            } catch (IOException e) {
                return; // it holds something of others, or it stays: no harm in either
            }
        }
    }
}
