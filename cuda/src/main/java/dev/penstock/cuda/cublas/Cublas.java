package dev.penstock.cuda.cublas;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.libraries.LibrarySearch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;

/**
 * cuBLAS, loaded for the life of the process. No header and no wrapper of NVIDIA is needed: the
 * handful of functions is bound by name, whichever of versions 11 to 13 is there.
 */
public final class Cublas {
    /** System property: a folder or a library, the one place to look. */
    static final String PROPERTY = "penstock.cublas";

    /** System property: {@code none} for products that do nothing else. */
    static final String JOINED_PROPERTY = "penstock.cublaslt";

    static final List<String> NAMES =
            List.of("libcublas.so.13", "libcublas.so.12", "libcublas.so.11");
    static final List<String> PACKAGES = List.of("nvidia/cu13/lib", "nvidia/cublas/lib");

    private static final List<Integer> VERSION_PARTS = List.of(0, 1, 2);

    private static final Map<Integer, String> STATUS =
            Map.of(
                    1, "CUBLAS_STATUS_NOT_INITIALIZED",
                    3, "CUBLAS_STATUS_ALLOC_FAILED",
                    7, "CUBLAS_STATUS_INVALID_VALUE",
                    8, "CUBLAS_STATUS_ARCH_MISMATCH",
                    11, "CUBLAS_STATUS_MAPPING_ERROR",
                    13, "CUBLAS_STATUS_EXECUTION_FAILED",
                    14, "CUBLAS_STATUS_INTERNAL_ERROR",
                    15, "CUBLAS_STATUS_NOT_SUPPORTED");

    private final Path file;
    private final CublasFunctions functions;
    private final @Nullable CublasLtFunctions joined;
    private final String version;

    private Cublas(Path file, CublasFunctions functions, @Nullable CublasLtFunctions joined) {
        this.file = file;
        this.functions = functions;
        this.joined = joined;
        this.version = readVersion(functions);
    }

    /** What came of looking for the library. */
    public sealed interface Probe {
        /**
         * These load, the newest first. Whether one serves a GPU shows with its first {@link
         * #multiplier}.
         */
        record Found(List<Cublas> libraries) implements Probe {
            public Found {
                libraries = List.copyOf(libraries);
            }
        }

        /** There is none, and why. */
        record Missing(String reason) implements Probe {}
    }

    /**
     * Looks in the usual places, or only where system property {@code penstock.cublas} says, and
     * loads what is there.
     */
    public static Probe probe() {
        return probe(LibrarySearch.ofThisMachine(NAMES, PACKAGES, PROPERTY));
    }

    static Probe probe(LibrarySearch search) {
        List<Cublas> libraries = new ArrayList<>();
        List<String> problems = new ArrayList<>();
        for (Path file : search.candidates()) {
            try {
                libraries.add(load(file));
            } catch (IllegalArgumentException | NoSuchElementException | DeviceException e) {
                problems.add("%s does not load: %s".formatted(file, e.getMessage()));
            }
        }
        if (!libraries.isEmpty()) {
            return new Probe.Found(libraries);
        }
        return new Probe.Missing(
                problems.isEmpty()
                        ? "there is no libcublas.so.13, .12 or .11 in " + search.places()
                        : String.join("; ", problems));
    }

    /** Its other half, libcublasLt, must be there first: it may lie where no loader looks. */
    private static Cublas load(Path file) {
        String name = String.valueOf(file.getFileName());
        Path other = file.resolveSibling(name.replaceFirst("libcublas", "libcublasLt"));
        CublasLtFunctions joined = null;
        if (Files.isRegularFile(other)) {
            joined = joined(other);
        }
        return new Cublas(
                file, CublasFunctions.of(SymbolLookup.libraryLookup(file, Arena.global())), joined);
    }

    private static @Nullable CublasLtFunctions joined(Path file) {
        SymbolLookup library = SymbolLookup.libraryLookup(file, Arena.global());
        if (System.getProperty(JOINED_PROPERTY, "").equals("none")) {
            return null;
        }
        try {
            return CublasLtFunctions.of(library);
        } catch (NoSuchElementException e) {
            System.getLogger(Cublas.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "%s lacks a function: %s; what follows products is done by kernels"
                                    .formatted(file, e.getMessage()));
            return null;
        }
    }

    private static String readVersion(CublasFunctions functions) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(JAVA_INT);
            List<String> parts = new ArrayList<>();
            for (int part : VERSION_PARTS) {
                check("cublasGetProperty", (int) functions.getProperty().invokeExact(part, value));
                parts.add(String.valueOf(value.get(JAVA_INT, 0)));
            }
            return String.join(".", parts);
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    /** Such as {@code 13.0.2}. */
    public String version() {
        return version;
    }

    /** Where it was found. */
    public Path file() {
        return file;
    }

    /**
     * Makes it ready to multiply on a GPU whose context the calling thread has.
     *
     * @param stream where products run, in order with its kernels
     * @param workspace device memory that products may use, 256-byte aligned: so no product
     *     allocates, and bits repeat
     * @throws DeviceException if it does not serve this GPU or driver
     */
    public CublasMultiplier multiplier(long stream, long workspace, long workspaceBytes) {
        return new CublasMultiplier(this, stream, workspace, workspaceBytes);
    }

    /**
     * Same for products that do what follows them; null if the library beside this one,
     * libcublasLt, is not there or has other functions.
     */
    public @Nullable CublasLtMultiplier joinedMultiplier(
            long stream, long workspace, long workspaceBytes) {
        return joined == null
                ? null
                : new CublasLtMultiplier(joined, stream, workspace, workspaceBytes);
    }

    /** Whether there are {@linkplain #joinedMultiplier products that do what follows them}. */
    public boolean joins() {
        return joined != null;
    }

    CublasFunctions functions() {
        return functions;
    }

    static void check(String call, int status) {
        if (status != 0) {
            throw new DeviceException(
                    "%s: expected success, got %s"
                            .formatted(call, STATUS.getOrDefault(status, "status " + status)));
        }
    }

    static RuntimeException rethrown(Throwable e) {
        return switch (e) {
            case RuntimeException runtime -> runtime;
            case Error error -> throw error;
            default -> new DeviceException("a call into cuBLAS failed", e);
        };
    }
}
