package dev.penstock.runtime.model.swap;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/**
 * What Linux can be told about the pages of a file and Java has no word for. Elsewhere nothing is
 * told: {@link #reserve} says so, the rest is advice.
 */
final class FilePages {
    private static final boolean LINUX = System.getProperty("os.name", "").startsWith("Linux");
    private static final int O_RDWR = 2;
    private static final int SYNC_FILE_RANGE_WRITE = 2;
    private static final int POSIX_FADV_DONTNEED = 4;
    private static final int FALLOC_FL_KEEP_SIZE = 1;
    private static final int FALLOC_FL_ZERO_RANGE = 16;
    private static final int ENOSPC = 28;

    private FilePages() {}

    /** Looked up where they are: other systems have no such functions, or other constants. */
    private static final class Functions {
        /** int open(const char* path, int flags, ...) */
        static final MethodHandle OPEN =
                find("open", Linker.Option.firstVariadicArg(2), ADDRESS, JAVA_INT);

        static final MethodHandle CLOSE = find("close", JAVA_INT);

        /** int posix_fallocate(int file, off_t from, off_t bytes), an error number */
        static final MethodHandle ALLOCATE =
                find("posix_fallocate", JAVA_INT, JAVA_LONG, JAVA_LONG);

        /** int fallocate(int file, int mode, off_t from, off_t bytes) */
        static final MethodHandle ZERO =
                find("fallocate", JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG);

        /** int sync_file_range(int file, off64_t from, off64_t bytes, unsigned flags) */
        static final MethodHandle SYNC_RANGE =
                find("sync_file_range", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);

        /** int posix_fadvise(int file, off_t from, off_t bytes, int advice), an error number */
        static final MethodHandle ADVISE =
                find("posix_fadvise", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);

        private static MethodHandle find(String name, MemoryLayout... arguments) {
            return handle(name, new Linker.Option[0], arguments);
        }

        private static MethodHandle find(
                String name, Linker.Option option, MemoryLayout... arguments) {
            return handle(name, new Linker.Option[] {option}, arguments);
        }

        private static MethodHandle handle(
                String name, Linker.Option[] options, MemoryLayout[] arguments) {
            Linker linker = Linker.nativeLinker();
            return linker.downcallHandle(
                    linker.defaultLookup().findOrThrow(name),
                    FunctionDescriptor.of(JAVA_INT, arguments),
                    options);
        }
    }

    /** A call that is given a descriptor of the file. */
    private interface Call {
        int of(int file) throws Throwable;
    }

    /**
     * Takes room on the disk for the first bytes of a file without writing them; they read as
     * zeros.
     *
     * @return whether that could be done; if not, writing them takes the room
     * @throws IOException if the disk has no room
     */
    static boolean reserve(Path file, long bytes) throws IOException {
        int error = on(file, fd -> (int) Functions.ALLOCATE.invokeExact(fd, 0L, bytes));
        if (error == ENOSPC) {
            throw new IOException("No space left on device");
        }
        return error == 0;
    }

    /**
     * Makes bytes of a file read as zeros without reading or writing them, mapped or not.
     *
     * @return whether that could be done
     */
    static boolean zero(Path file, long from, long bytes) {
        int mode = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
        return on(file, fd -> (int) Functions.ZERO.invokeExact(fd, mode, from, bytes)) == 0;
    }

    /** Begins to write to the disk what was changed, without waiting for it. */
    static void writeBack(Path file) {
        int _ =
                on(
                        file,
                        fd ->
                                (int)
                                        Functions.SYNC_RANGE.invokeExact(
                                                fd, 0L, 0L, SYNC_FILE_RANGE_WRITE));
    }

    /**
     * Takes pages of a file out of the page cache, those that are on the disk and not mapped.
     *
     * @param from the first byte
     * @param bytes how many; 0: all from there on
     */
    static void drop(Path file, long from, long bytes) {
        int _ =
                on(
                        file,
                        fd ->
                                (int)
                                        Functions.ADVISE.invokeExact(
                                                fd, from, bytes, POSIX_FADV_DONTNEED));
    }

    /** Returns the call's answer, -1 where it cannot be made. */
    private static int on(Path file, Call call) {
        if (!LINUX) {
            return -1;
        }
        try (Arena arena = Arena.ofConfined()) {
            int fd = (int) Functions.OPEN.invokeExact(arena.allocateFrom(file.toString()), O_RDWR);
            if (fd < 0) {
                return -1;
            }
            try {
                return call.of(fd);
            } finally {
                int _ = (int) Functions.CLOSE.invokeExact(fd);
            }
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException("a call into the C library failed", e);
        }
    }
}
