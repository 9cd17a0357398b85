package dev.penstock.cuda.cublas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.libraries.LibrarySearch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CublasTest {
    @TempDir Path root;

    @Test
    void theNewestVersionComesFirstAndThenTheOrderOfPlaces() throws IOException {
        Path listed = library("opt/here/libcublas.so.12");
        Path old = library("usr/local/cuda-12.4/lib64/libcublas.so.12");
        Path fresh = library("usr/local/cuda-13.0/targets/x86_64-linux/lib/libcublas.so.13");
        Path system = library("usr/lib/x86_64-linux-gnu/libcublas.so.11");
        Path python = library("env/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12");
        Path real = library("home/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13");
        Path interpreter = library("home/bin/python3.12");
        assertThat(interpreter.toFile().setExecutable(true)).isTrue();
        Files.createDirectories(root.resolve("env/bin"));
        Files.createSymbolicLink(root.resolve("env/bin/python3"), interpreter);

        var search =
                search(
                        "",
                        root,
                        Map.of(
                                "LD_LIBRARY_PATH",
                                "/nowhere::" + root.resolve("opt/here"),
                                "PATH",
                                "/nowhere:" + root.resolve("env/bin")));

        assertThat(search.candidates()).containsExactly(fresh, real, listed, old, python, system);
    }

    /** Debian's and Ubuntu's Python, and a toolkit in another place. */
    @Test
    void whatPipAddsToTheSystemsPythonIsFound() throws IOException {
        Path toolkit = library("opt/cuda/lib64/libcublas.so.13");
        Path ofAll =
                library("usr/local/lib/python3.12/dist-packages/nvidia/cublas/lib/libcublas.so.12");
        Path ofUser =
                library(
                        "home/me/.local/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12");
        assertThat(library("usr/bin/python3").toFile().setExecutable(true)).isTrue();

        var search =
                search(
                        "",
                        root,
                        Map.of(
                                "PATH",
                                root.resolve("usr/bin").toString(),
                                "HOME",
                                root.resolve("home/me").toString(),
                                "CUDA_HOME",
                                root.resolve("opt/cuda").toString()));

        assertThat(search.candidates()).containsExactly(toolkit, ofAll, ofUser);
    }

    @Test
    void onlyTheFolderOrLibraryThatIsSaidIsLookedAt() throws IOException {
        library("usr/lib64/libcublas.so.13");
        Path chosen = library("chosen/libcublas.so.11");

        assertThat(search(root.resolve("chosen")).candidates()).containsExactly(chosen);
        assertThat(search(chosen).candidates()).containsExactly(chosen);
        assertThat(Cublas.probe(search(root)))
                .isEqualTo(
                        new Cublas.Probe.Missing(
                                "there is no libcublas.so.13, .12 or .11 in " + root));
    }

    @Test
    void whatDoesNotLoadIsPassedByAndNamedIfNothingLoads() throws IOException {
        Path broken = library("broken/libcublas.so.13");

        assertThat(Cublas.probe(search(broken)))
                .isInstanceOfSatisfying(
                        Cublas.Probe.Missing.class,
                        missing ->
                                assertThat(missing.reason()).contains(broken + " does not load"));

        EmulatedGpus.requireEmulated();
        Path good = Path.of(System.getProperty(Cublas.PROPERTY));
        var both = search("", root, Map.of("LD_LIBRARY_PATH", broken.getParent() + ":" + good));
        assertThat(Cublas.probe(both))
                .isInstanceOfSatisfying(
                        Cublas.Probe.Found.class,
                        found -> {
                            assertThat(found.libraries()).hasSize(1);
                            Cublas library = found.libraries().getFirst();
                            assertThat(library.version()).isEqualTo("13.0.0");
                            assertThat(library.file()).isEqualTo(good.resolve("libcublas.so.13"));
                        });
    }

    /** On a thread without a current GPU. */
    @Test
    void whatCublasRefusesIsSaidByName() throws Exception {
        EmulatedGpus.requireEmulated();
        try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
            Future<?> opening =
                    thread.submit(
                            () -> {
                                try (CublasMultiplier opened = emulated().multiplier(0, 0, 0)) {
                                    opened.multiply(
                                            DType.F32, false, false, 1, 1, 1, 0, 1, 0, 1, false, 0,
                                            1);
                                }
                            });

            assertThatThrownBy(() -> opening.get(60, TimeUnit.SECONDS))
                    .cause()
                    .isInstanceOf(DeviceException.class)
                    .hasMessage(
                            "cublasCreate: expected success, got CUBLAS_STATUS_NOT_INITIALIZED");
        }
    }

    private static Cublas emulated() {
        if (Cublas.probe() instanceof Cublas.Probe.Found(var libraries)) {
            return libraries.getFirst();
        }
        throw new AssertionError("the emulated cuBLAS is not there");
    }

    private static LibrarySearch search(Path only) {
        return search(only.toString(), Path.of("/"), Map.of());
    }

    private static LibrarySearch search(String only, Path root, Map<String, String> environment) {
        return new LibrarySearch(Cublas.NAMES, Cublas.PACKAGES, only, root, environment);
    }

    /** A file with the library's name that is no library. */
    private Path library(String place) throws IOException {
        Path file = root.resolve(place);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, "no library");
    }
}
