package dev.penstock.cuda.libraries;

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
 * Where a machine may have a library of NVIDIA's: the toolkit's own places, and beside the {@code
 * python3} on the PATH, whose packages bring it too.
 *
 * @param names of the library's files, the newest version first
 * @param packages folders below those of python's packages, such as {@code nvidia/cublas/lib}
 * @param only a folder or a library, the one place to look; empty for all
 * @param root what absolute places are seen from, {@code /} but in tests
 * @param environment of the process
 */
public record LibrarySearch(
        List<String> names,
        List<String> packages,
        String only,
        Path root,
        Map<String, String> environment) {

    public LibrarySearch {
        names = List.copyOf(names);
        packages = List.copyOf(packages);
        environment = Map.copyOf(environment);
    }

    /**
     * On this machine.
     *
     * @param property system property that names a folder or a library, the one place to look
     */
    public static LibrarySearch ofThisMachine(
            List<String> names, List<String> packages, String property) {
        return new LibrarySearch(
                names, packages, System.getProperty(property, ""), Path.of("/"), System.getenv());
    }

    /** Libraries that are there: the newest version first, each file once. */
    public List<Path> candidates() {
        if (!only.isEmpty() && Files.isRegularFile(Path.of(only))) {
            return List.of(Path.of(only).toAbsolutePath());
        }
        Set<Path> folders = folders();
        Set<Path> files = new LinkedHashSet<>();
        for (String name : names) {
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
    public String places() {
        return only.isEmpty()
                ? "LD_LIBRARY_PATH, CUDA_HOME, /usr/local/cuda*, the system's folders and those of"
                        + " python3"
                : only;
    }

    private Set<Path> folders() {
        if (!only.isEmpty()) {
            return Set.of(Path.of(only));
        }
        Set<Path> folders = new LinkedHashSet<>(listed("LD_LIBRARY_PATH"));
        for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
            listed(variable).forEach(toolkit -> folders.add(toolkit.resolve("lib64")));
        }
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

    /**
     * Of the python that is called, which may be a virtual environment's, and of the real one. What
     * pip adds to the system's python lies in {@code /usr/local} on Debian and Ubuntu, and below
     * the user's home where pip may not write there.
     */
    private List<Path> pythons() {
        List<Path> folders = new ArrayList<>();
        for (Path bin : listed("PATH")) {
            Path python = bin.resolve("python3");
            if (Files.isExecutable(python)) {
                folders.addAll(packagesUnder(bin.resolve("..").normalize()));
                folders.addAll(packagesUnder(realPath(python).resolve("../..").normalize()));
                folders.addAll(packagesUnder(root.resolve("usr/local")));
                listed("HOME")
                        .forEach(home -> folders.addAll(packagesUnder(home.resolve(".local"))));
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

    private List<Path> packagesUnder(Path prefix) {
        List<Path> folders = new ArrayList<>();
        for (Path version : matching(prefix.resolve("lib"), "python3*")) {
            for (String kind : List.of("site-packages", "dist-packages")) {
                packages.forEach(each -> folders.add(version.resolve(kind).resolve(each)));
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
