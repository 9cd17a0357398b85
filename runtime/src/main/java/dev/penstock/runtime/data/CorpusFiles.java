package dev.penstock.runtime.data;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileSystems;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** Finds the files that a source names. */
final class CorpusFiles {
    private static final String KEY = "data.source";

    private CorpusFiles() {}

    /**
     * Returns the files of a file, a folder or a glob, in the order of their paths.
     *
     * @throws DataException if there are none
     */
    static List<Path> find(Path source) {
        try {
            if (Files.isRegularFile(source)) {
                return List.of(source);
            }
            if (Files.isDirectory(source)) {
                return some(below(source, file -> true), "a folder with at least one file", source);
            }
            if (isGlob(source.toString())) {
                PathMatcher matcher =
                        FileSystems.getDefault()
                                .getPathMatcher("glob:" + source.toAbsolutePath().normalize());
                List<Path> files =
                        below(root(source), file -> matcher.matches(file.toAbsolutePath()));
                return some(files, "a glob that matches at least one file", source);
            }
        } catch (IOException | UncheckedIOException e) {
            throw problem("a folder that can be read", source + ": " + e.getMessage());
        }
        throw problem("an existing file, folder or glob", source + ", which does not exist");
    }

    private static List<Path> below(Path folder, Predicate<Path> wanted) throws IOException {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> walk =
                Files.walk(folder.toAbsolutePath().normalize(), FileVisitOption.FOLLOW_LINKS)) {
            return walk.filter(Files::isRegularFile)
                    .filter(file -> !isHidden(folder, file))
                    .filter(wanted)
                    .sorted()
                    .toList();
        }
    }

    private static boolean isHidden(Path folder, Path file) {
        for (Path part : folder.toAbsolutePath().normalize().relativize(file)) {
            if (part.toString().startsWith(".")) {
                return true;
            }
        }
        return false;
    }

    private static boolean isGlob(String text) {
        return text.chars().anyMatch(c -> "*?[{".indexOf(c) >= 0);
    }

    /** Returns the deepest folder above the first part with a wildcard. */
    private static Path root(Path glob) {
        Path root = glob.toAbsolutePath().normalize();
        Path folder = root.getRoot();
        for (Path part : root) {
            if (isGlob(part.toString())) {
                break;
            }
            folder = folder.resolve(part);
        }
        return folder;
    }

    private static List<Path> some(List<Path> files, String expected, Path source) {
        if (files.isEmpty()) {
            throw problem(expected, source + ", which has none");
        }
        return files;
    }

    private static DataException problem(String expected, String got) {
        return new DataException(
                List.of(
                        new DataProblem(
                                KEY,
                                expected,
                                got,
                                "check the path, which is relative to the configuration's folder")));
    }
}
