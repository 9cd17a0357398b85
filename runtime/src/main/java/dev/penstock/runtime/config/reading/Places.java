package dev.penstock.runtime.config.reading;

import com.typesafe.config.ConfigOrigin;
import com.typesafe.config.ConfigUtil;
import com.typesafe.config.ConfigValue;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Where values come from, and where the relative paths in them lead: first to the folder of the
 * file that holds the value, then to the main file's folder and the working directory. A path in an
 * override leads to the working directory first.
 *
 * @param mainFile the configuration file that was asked for, absolute
 * @param workingDirectory absolute
 */
public record Places(Path mainFile, Path workingDirectory) {

    /** The file as the user would write it, or the override as it was typed. */
    public String nameOf(ConfigOrigin origin) {
        String file = origin.filename();
        return file == null
                ? origin.description().replaceFirst(": \\d+$", "")
                : nameOf(Path.of(file));
    }

    public String nameOf(Path file) {
        Path absolute = file.toAbsolutePath().normalize();
        return absolute.startsWith(workingDirectory) && !absolute.equals(workingDirectory)
                ? workingDirectory.relativize(absolute).toString()
                : absolute.toString();
    }

    int lineOf(ConfigOrigin origin) {
        return origin.filename() == null ? 0 : Math.max(0, origin.lineNumber());
    }

    /** The absolute path that a value means; for a glob, everything before it has to exist. */
    public Path existing(ConfigValue value) {
        Path path = path(value.unwrapped().toString());
        List<Path> candidates =
                foldersFor(value.origin()).stream()
                        .map(folder -> folder.resolve(path).normalize())
                        .distinct()
                        .toList();
        return candidates.stream()
                .filter(candidate -> Files.isReadable(beforeGlob(candidate)))
                .findFirst()
                .orElseThrow(() -> nothingAt(path, candidates));
    }

    /**
     * Returns the path that a text names.
     *
     * @throws Mismatch if no file system of this machine could hold such a name
     */
    public static Path path(String text) {
        if (text.isBlank()) {
            throw new Mismatch("\"\"", "name one, or leave the key out");
        }
        try {
            return Path.of(text);
        } catch (InvalidPathException e) {
            throw new Mismatch(
                    ConfigUtil.quoteString(text)
                            + ", which no file can be called: "
                            + e.getReason(),
                    "take the character out");
        }
    }

    private static Mismatch nothingAt(Path path, List<Path> candidates) {
        return new Mismatch(
                "\"" + path + "\", and nothing readable is at " + joined(candidates),
                "check the name, or give an absolute path");
    }

    private static String joined(List<Path> paths) {
        return String.join(" or ", paths.stream().map(Path::toString).toList());
    }

    private Set<Path> foldersFor(ConfigOrigin origin) {
        Set<Path> folders = new LinkedHashSet<>();
        String file = origin.filename();
        if (file == null) {
            folders.add(workingDirectory);
        } else {
            folders.add(folderOf(Path.of(file).toAbsolutePath()));
        }
        folders.add(folderOf(mainFile));
        folders.add(workingDirectory);
        return folders;
    }

    private static Path folderOf(Path absoluteFile) {
        Path parent = absoluteFile.getParent();
        return parent == null ? absoluteFile : parent;
    }

    private static Path beforeGlob(Path path) {
        Path plain = path;
        while (plain.toString().matches(".*[*?\\[{].*")) {
            plain = folderOf(plain);
        }
        return plain;
    }
}
