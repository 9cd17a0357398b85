package dev.penstock.runtime.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Texts that are about to replace files of a folder. All of them are on disk under other names
 * before the first file is replaced, so a disk that runs full changes nothing.
 */
public final class TextsAside {
    private final Path folder;

    /** Names of the files that are not replaced yet. */
    private final List<String> names = new ArrayList<>();

    private TextsAside(Path folder) {
        this.folder = folder;
    }

    /**
     * Writes and flushes them under other names.
     *
     * @param folder that exists
     * @param texts by the names that they get
     * @throws IOException if they cannot be written; nothing of them is left then
     */
    public static TextsAside write(Path folder, Map<String, String> texts) throws IOException {
        TextsAside aside = new TextsAside(folder);
        try {
            for (Map.Entry<String, String> text : texts.entrySet()) {
                aside.names.add(text.getKey());
                DurableFiles.writeAside(folder.resolve(text.getKey()), text.getValue());
            }
            return aside;
        } catch (IOException e) {
            try {
                aside.discard();
            } catch (IOException more) {
                e.addSuppressed(more);
            }
            throw e;
        }
    }

    /** Returns whether a text was left aside, by a process that was killed. */
    public static boolean isLeft(Path folder, String name) {
        return Files.exists(DurableFiles.aside(folder.resolve(name)));
    }

    /** Returns whether a file of this name is a text that waits for its own. */
    public static boolean isAside(String name) {
        return name.endsWith(DurableFiles.ASIDE);
    }

    /** Gives them their names, in the order of the texts; each replaces the file that has it. */
    public void publish() throws IOException {
        for (String name : List.copyOf(names)) {
            Path file = folder.resolve(name);
            DurableFiles.move(DurableFiles.aside(file), file);
            names.remove(name);
        }
    }

    /** Removes those that did not get their names. */
    public void discard() throws IOException {
        for (String name : names) {
            Files.deleteIfExists(DurableFiles.aside(folder.resolve(name)));
        }
    }
}
