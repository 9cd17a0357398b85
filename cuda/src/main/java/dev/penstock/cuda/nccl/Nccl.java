package dev.penstock.cuda.nccl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.libraries.LibrarySearch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;

/** NCCL 2, loaded for the life of the process; a handful of functions bound by name. */
public final class Nccl {
    /** Bytes of what members of a communicator must know before they meet. */
    public static final int ID_BYTES = 128;

    /** System property: a folder or a library, the one place to look. */
    static final String PROPERTY = "penstock.nccl";

    static final List<String> NAMES = List.of("libnccl.so.2");
    static final List<String> PACKAGES = List.of("nvidia/nccl/lib");

    private static final Map<Integer, String> RESULT =
            Map.of(
                    1, "ncclUnhandledCudaError",
                    2, "ncclSystemError",
                    3, "ncclInternalError",
                    4, "ncclInvalidArgument",
                    5, "ncclInvalidUsage",
                    6, "ncclRemoteError",
                    7, "ncclInProgress");

    private final Path file;
    private final NcclFunctions functions;
    private final String version;

    private Nccl(Path file, NcclFunctions functions) {
        this.file = file;
        this.functions = functions;
        this.version = readVersion(functions);
    }

    /** What came of looking for the library. */
    public sealed interface Probe {
        /** It loads. */
        record Found(Nccl library) implements Probe {}

        /** There is none, and why. */
        record Missing(String reason) implements Probe {}
    }

    /**
     * Looks in the usual places, or only where system property {@code penstock.nccl} says, and
     * loads what is there.
     */
    public static Probe probe() {
        return probe(LibrarySearch.ofThisMachine(NAMES, PACKAGES, PROPERTY));
    }

    static Probe probe(LibrarySearch search) {
        List<String> problems = new ArrayList<>();
        for (Path file : search.candidates()) {
            try {
                SymbolLookup symbols = SymbolLookup.libraryLookup(file, Arena.global());
                return new Probe.Found(new Nccl(file, NcclFunctions.of(symbols)));
            } catch (IllegalArgumentException | NoSuchElementException | DeviceException e) {
                problems.add("%s does not load: %s".formatted(file, e.getMessage()));
            }
        }
        return new Probe.Missing(
                problems.isEmpty()
                        ? "there is no libnccl.so.2 in " + search.places()
                        : String.join("; ", problems));
    }

    private static String readVersion(NcclFunctions functions) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(JAVA_INT);
            check("ncclGetVersion", (int) functions.getVersion().invokeExact(value));
            int code = value.get(JAVA_INT, 0); // 22703; before 2.9 four digits
            int major = code < 10_000 ? code / 1000 : code / 10_000;
            int rest = code < 10_000 ? code % 1000 : code % 10_000;
            return "%d.%d.%d".formatted(major, rest / 100, rest % 100);
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    /** Such as {@code 2.27.3}. */
    public String version() {
        return version;
    }

    /** Where it was found. */
    public Path file() {
        return file;
    }

    /** What one member makes, and tells all others, before they {@link #join}. */
    public byte[] newId() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = arena.allocate(NcclFunctions.UNIQUE_ID);
            check("ncclGetUniqueId", (int) functions.getUniqueId().invokeExact(id));
            return id.toArray(JAVA_BYTE);
        } catch (Throwable e) {
            throw rethrown(e);
        }
    }

    /**
     * Joins the members that have the same id, each with a GPU of its own, whose context the
     * calling thread has. Waits for all of them.
     *
     * @param index of this one, from 0
     * @throws DeviceException if the library refuses
     */
    public NcclMember join(byte[] id, int members, int index) {
        return new NcclMember(this, id, members, index);
    }

    NcclFunctions functions() {
        return functions;
    }

    static void check(String call, int result) {
        if (result != 0) {
            throw new DeviceException(
                    "%s: expected success, got %s; NCCL_DEBUG=WARN in the environment makes NCCL say why"
                            .formatted(call, RESULT.getOrDefault(result, "result " + result)));
        }
    }

    static RuntimeException rethrown(Throwable e) {
        return switch (e) {
            case RuntimeException runtime -> runtime;
            case Error error -> throw error;
            default -> new DeviceException("a call into NCCL failed", e);
        };
    }
}
