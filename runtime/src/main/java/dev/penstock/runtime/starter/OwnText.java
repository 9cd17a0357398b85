package dev.penstock.runtime.starter;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;

/**
 * The text files of a folder.
 *
 * @param source what data.source says, relative to the folder
 * @param files how many there are
 * @param bytes their length, unpacked
 */
record OwnText(String source, int files, long bytes) {
    /** The subfolder for texts. */
    static final String FOLDER = "text";

    private static final List<String> ENDINGS = List.of("txt", "text", "md", "txt.gz", "md.gz");
    private static final Pattern PLAIN = Pattern.compile("[\\p{L}\\p{N} _@%+=,.-]+");

    /** Returns what is in the subfolder for texts, or else beside it; without files if nothing. */
    static OwnText in(Path folder) throws IOException {
        OwnText below = below(folder.resolve(FOLDER));
        return below.files > 0 ? below : beside(folder);
    }

    private static OwnText below(Path texts) throws IOException {
        if (!Files.isDirectory(texts)) {
            return new OwnText(FOLDER, 0, 0);
        }
        List<Path> all;
        try (Stream<Path> walk = Files.walk(texts)) {
            all = walk.filter(Files::isRegularFile).filter(file -> isSeen(texts, file)).toList();
        }
        List<Path> found = all.stream().filter(OwnText::isText).toList();
        String source = found.size() == all.size() ? FOLDER : FOLDER + "/**" + pattern(found);
        return new OwnText(source, found.size(), lengths(found));
    }

    private static OwnText beside(Path folder) throws IOException {
        List<Path> found;
        try (Stream<Path> list = Files.list(folder)) {
            found =
                    list.filter(Files::isRegularFile)
                            .filter(file -> isSeen(folder, file))
                            .filter(OwnText::isText)
                            .toList();
        }
        String only = found.size() == 1 ? name(found.getFirst()) : "";
        return new OwnText(
                PLAIN.matcher(only).matches() ? only : "*" + pattern(found),
                found.size(),
                lengths(found));
    }

    /** Hidden files are no part of a corpus. */
    private static boolean isSeen(Path folder, Path file) {
        for (Path part : folder.relativize(file)) {
            if (part.toString().startsWith(".")) {
                return false;
            }
        }
        return true;
    }

    private static boolean isText(Path file) {
        return !ending(file).isEmpty();
    }

    private static String ending(Path file) {
        String name = name(file).toLowerCase(Locale.ROOT);
        return ENDINGS.stream().filter(end -> name.endsWith("." + end)).findFirst().orElse("");
    }

    /** Endings as they are written: globs tell capitals from small letters. */
    private static String pattern(List<Path> files) {
        TreeSet<String> endings =
                files.stream()
                        .map(
                                file ->
                                        name(file)
                                                .substring(
                                                        name(file).length()
                                                                - ending(file).length()))
                        .collect(Collectors.toCollection(TreeSet::new));
        return endings.size() == 1 ? "." + endings.first() : ".{" + String.join(",", endings) + "}";
    }

    private static String name(Path file) {
        return file.getFileName().toString();
    }

    private static long lengths(List<Path> files) throws IOException {
        long sum = 0;
        for (Path file : files) {
            sum +=
                    name(file).toLowerCase(Locale.ROOT).endsWith(".gz")
                            ? unpacked(file)
                            : Files.size(file);
        }
        return sum;
    }

    private static long unpacked(Path file) throws IOException {
        try (InputStream packed = new BufferedInputStream(Files.newInputStream(file));
                InputStream text = new GZIPInputStream(packed)) {
            return text.transferTo(OutputStream.nullOutputStream());
        }
    }
}
