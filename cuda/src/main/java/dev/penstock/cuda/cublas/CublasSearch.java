package dev.penstock.cuda.cublas;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Where a machine may have cuBLAS: the toolkit's own places, and beside the {@code python3} on the
 * PATH, whose packages bring it too.
 *
 * @param only a folder or a library, the one place to look; empty for all
 * @param root what absolute places are seen from, {@code /} but in tests
 * @param environment of the process
 */
record CublasSearch(String only, Path root, Map<String, String> environment) {
    /** System property: a folder or a library, the one place to look. */
    static final String PROPERTY = "penstock.cublas";

    private static final List<String> NAMES =
            List.of("libcublas.so.13", "libcublas.so.12", "libcublas.so.11");

    static CublasSearch ofThisMachine() {
        return new CublasSearch(System.getProperty(PROPERTY, ""), Path.of("/"), System.getenv());
    }

    /** Libraries that are there: the newest version first, each file once. */
    List<Path> candidates() {
        if (!only.isEmpty() && Files.isRegularFile(Path.of(only))) {
            return List.of(Path.of(only).toAbsolutePath());
        }
        Set<Path> folders = folders();
        Set<Path> files = new LinkedHashSet<>();
        for (String name : NAMES) {
            for (Path folder : folders) {
                Path file = folder.resolve(name);
                if (Files.isRegularFile(file)) {
                    files.add(file.toAbsolutePath());
                }
            }
        }
        return List.copyOf(files);
    }

    /** For people. */
    String places() {
        return only.isEmpty()
                ? "LD_LIBRARY_PATH, /usr/local/cuda*, the system's folders and those of python3"
                : only;
    }

    private Set<Path> folders() {
        if (!only.isEmpty()) {
            return Set.of(Path.of(only));
        }
        Set<Path> folders = new LinkedHashSet<>(listed("LD_LIBRARY_PATH"));
        for (Path toolkit : matching(root.resolve("usr/local"), "cuda*")) {
            folders.add(toolkit.resolve("lib64"));
            folders.add(toolkit.resolve("targets/x86_64-linux/lib"));
        }
        folders.add(root.resolve("usr/lib/x86_64-linux-gnu"));
        folders.add(root.resolve("usr/lib64"));
        folders.addAll(pythons());
        return folders;
    }

    private List<Path> listed(String variable) {
        return Arrays.stream(environment.getOrDefault(variable, "").split(":"))
                .filter(folder -> !folder.isEmpty())
                .map(Path::of)
                .toList();
    }

    /** Of the python that is called, which may be a virtual environment's, and of the real one. */
    private List<Path> pythons() {
        List<Path> folders = new ArrayList<>();
        for (Path bin : listed("PATH")) {
            Path python = bin.resolve("python3");
            if (Files.isExecutable(python)) {
                folders.addAll(packages(bin.resolve("..").normalize()));
                folders.addAll(packages(realPath(python).resolve("../..").normalize()));
                break;
            }
        }
        return folders;
    }

    private static Path realPath(Path file) {
        try {
            return file.toRealPath();
        } catch (IOException e) {
            return file.toAbsolutePath();
        }
    }

    private static List<Path> packages(Path prefix) {
        List<Path> folders = new ArrayList<>();
        for (Path version : matching(prefix.resolve("lib"), "python3*")) {
            for (String kind : List.of("site-packages", "dist-packages")) {
                folders.add(version.resolve(kind).resolve("nvidia/cu13/lib"));
                folders.add(version.resolve(kind).resolve("nvidia/cublas/lib"));
            }
        }
        return folders;
    }

    /** Newest versions first. */
    private static List<Path> matching(Path folder, String glob) {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(folder, glob)) {
            all.forEach(found::add);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        found.sort(Comparator.reverseOrder());
        return found;
    }
}
