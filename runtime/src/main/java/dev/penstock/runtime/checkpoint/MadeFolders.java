package dev.penstock.runtime.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A folder for files to come, with those above it that are made for it. */
final class MadeFolders {
    /** Innermost first. */
    private final List<Path> made = new ArrayList<>();

    private MadeFolders() {}

    /** Makes what is not there. */
    static MadeFolders of(Path folder) throws IOException {
        var folders = new MadeFolders();
        for (Path each = folder.toAbsolutePath();
                each != null && Files.notExists(each);
                each = each.getParent()) {
            folders.made.add(each);
        }
        Files.createDirectories(folder);
        return folders;
    }

    /** Removes what was made, as far as it is empty, after nothing came. */
    void remove() {
        for (Path each : made) {
            try {
                Files.delete(each);
            } catch (IOException e) {
                return; // somebody uses it, and so those above
            }
        }
    }
}
