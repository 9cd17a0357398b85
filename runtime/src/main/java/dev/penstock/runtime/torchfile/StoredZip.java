package dev.penstock.runtime.torchfile;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A zip file whose entries are stored as they are, not compressed, so that each is a slice of the
 * mapped file. Everything in it is checked against the file's size before it is used; only the
 * directory, whose size is bounded, is copied.
 *
 * <p>Zip files begin at their end: a record there says where the directory is; each entry of the
 * directory says where its local header is; the data follow that. Files beyond 4 GiB have a second
 * record and wider fields (zip64).
 */
final class StoredZip implements Container {
    private static final int END = 0x06054b50;
    private static final int END_BYTES = 22;
    private static final int LONGEST_COMMENT = 0xffff;
    private static final int LOCATOR64 = 0x07064b50;
    private static final int LOCATOR64_BYTES = 20;
    private static final int END64 = 0x06064b50;
    private static final int END64_BYTES = 56;
    private static final int ENTRY = 0x02014b50;
    private static final int ENTRY_BYTES = 46;
    private static final int LOCAL = 0x04034b50;
    private static final int LOCAL_BYTES = 30;
    private static final int EXTRA64 = 1;
    private static final long IN_EXTRA64 = 0xffff_ffffL;
    private static final int ENCRYPTED = 1;

    /** A hundred thousand tensors; bounds what a hostile file makes us allocate. */
    private static final long MAX_DIRECTORY_BYTES = 16 << 20;

    private static final ValueLayout.OfShort U16 =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfInt U32 =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfLong U64 =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(LITTLE_ENDIAN);

    private final Map<String, MemorySegment> entries;
    private final String prefix;
    private final MemorySegment table;

    private StoredZip(Map<String, MemorySegment> entries, String prefix, MemorySegment table) {
        this.entries = entries;
        this.prefix = prefix;
        this.table = table;
    }

    /** Returns whether a file begins as a zip file does. */
    static boolean isOne(MemorySegment file) {
        return file.byteSize() >= END_BYTES && file.get(U32, 0) == LOCAL;
    }

    /** Where the directory lies. */
    private record Directory(long at, long bytes, long entries) {}

    /** Reads the directory. */
    static StoredZip read(MemorySegment file) throws MalformedException {
        Directory directory = directory(file);
        Map<String, MemorySegment> entries = new HashMap<>();
        long at = directory.at();
        long end = directory.at() + directory.bytes();
        for (long i = 0; i < directory.entries(); i++) {
            if (end - at < ENTRY_BYTES || file.get(U32, at) != ENTRY) {
                throw new MalformedException(
                        "entry %d of the zip directory is cut short or damaged".formatted(i));
            }
            int nameBytes = u16(file, at + 28);
            int extraBytes = u16(file, at + 30);
            long bytes = (long) ENTRY_BYTES + nameBytes + extraBytes + u16(file, at + 32);
            if (bytes > end - at) {
                throw new MalformedException(
                        "entry %d of the zip directory is cut short".formatted(i));
            }
            MemorySegment entry = file.asSlice(at, ENTRY_BYTES + nameBytes + extraBytes);
            String name = name(entry, ENTRY_BYTES, nameBytes);
            if (entries.put(name, data(file, directory, entry, name)) != null) {
                throw new MalformedException("the zip directory has '%s' twice".formatted(name));
            }
            at += bytes;
        }
        return of(entries);
    }

    private static Directory directory(MemorySegment file) throws MalformedException {
        long size = file.byteSize();
        long last = size - END_BYTES;
        for (long at = last; at >= 0 && at >= last - LONGEST_COMMENT; at--) {
            boolean found = file.get(U32, at) == END && at + END_BYTES + u16(file, at + 20) == size;
            if (found) {
                Directory directory = directory64(file, at);
                boolean fits =
                        directory.at() >= 0
                                && directory.bytes() >= 0
                                && directory.bytes() <= MAX_DIRECTORY_BYTES
                                && directory.at() <= at - directory.bytes()
                                && directory.entries() >= 0
                                && directory.entries() <= directory.bytes() / ENTRY_BYTES;
                if (fits) {
                    return directory;
                }
                throw new MalformedException(
                        "the zip directory of %d bytes at %d does not fit the file of %d"
                                .formatted(directory.bytes(), directory.at(), size));
            }
        }
        throw new MalformedException("it has no zip directory (cut short?)");
    }

    private static Directory directory64(MemorySegment file, long end) throws MalformedException {
        long entries = u16(file, end + 10);
        long bytes = u32(file, end + 12);
        long at = u32(file, end + 16);
        boolean small = entries != 0xffff && bytes != IN_EXTRA64 && at != IN_EXTRA64;
        long locator = end - LOCATOR64_BYTES;
        if (small || locator < 0 || file.get(U32, locator) != LOCATOR64) {
            return new Directory(at, bytes, entries);
        }
        long record = file.get(U64, locator + 8);
        if (record < 0 || record > locator - END64_BYTES || file.get(U32, record) != END64) {
            throw new MalformedException("the record of the zip64 directory is damaged");
        }
        return new Directory(
                file.get(U64, record + 48), file.get(U64, record + 40), file.get(U64, record + 32));
    }

    /** Returns the data of an entry of the directory. */
    private static MemorySegment data(
            MemorySegment file, Directory directory, MemorySegment entry, String name)
            throws MalformedException {
        int nameBytes = u16(entry, 28);
        MemorySegment extra = entry.asSlice(ENTRY_BYTES + nameBytes);
        Wide wide = new Wide(extra);
        long size = wide.value(u32(entry, 24));
        long stored = wide.value(u32(entry, 20));
        long local = wide.value(u32(entry, 42));
        if (u16(entry, 10) != 0 || stored != size || (u16(entry, 8) & ENCRYPTED) != 0) {
            throw new MalformedException(
                    "'%s' is compressed or encrypted; torch stores it as it is".formatted(name));
        }
        long limit = directory.at();
        if (local < 0 || local > limit - LOCAL_BYTES || file.get(U32, local) != LOCAL) {
            throw new MalformedException("'%s' has no header where expected".formatted(name));
        }
        long begin = local + LOCAL_BYTES + u16(file, local + 26) + u16(file, local + 28);
        if (size < 0 || begin > limit || size > limit - begin) {
            throw new MalformedException(
                    "'%s' of %s bytes at %d does not fit the file"
                            .formatted(name, Long.toUnsignedString(size), begin));
        }
        return file.asSlice(begin, size);
    }

    /** The fields that did not fit 32 bits, in the order in which they are asked for. */
    private static final class Wide {
        private final MemorySegment extra;
        private long at;
        private long end;

        Wide(MemorySegment extra) {
            this.extra = extra;
            for (long field = 0; field + 4 <= extra.byteSize(); ) {
                long bytes = u16(extra, field + 2);
                if (u16(extra, field) == EXTRA64 && field + 4 + bytes <= extra.byteSize()) {
                    at = field + 4;
                    end = at + bytes;
                    return;
                }
                field += 4 + bytes;
            }
        }

        long value(long narrow) throws MalformedException {
            if (narrow != IN_EXTRA64) {
                return narrow;
            }
            if (end - at < Long.BYTES) {
                throw new MalformedException("a zip64 field is missing");
            }
            at += Long.BYTES;
            return extra.get(U64, at - Long.BYTES);
        }
    }

    /** Torch puts everything in one folder, whose name is free. */
    private static StoredZip of(Map<String, MemorySegment> entries) throws MalformedException {
        List<Map.Entry<String, MemorySegment>> tables =
                entries.entrySet().stream()
                        .filter(entry -> ("/" + entry.getKey()).endsWith("/data.pkl"))
                        .toList();
        if (tables.size() != 1) {
            throw new MalformedException(
                    "expected one data.pkl in the zip file, got %d".formatted(tables.size()));
        }
        String name = tables.getFirst().getKey();
        String prefix = name.substring(0, name.lastIndexOf('/') + 1);
        MemorySegment order = entries.get(prefix + "byteorder");
        if (order != null && !isLittle(order)) {
            throw new MalformedException("it was written big-endian; expected little-endian");
        }
        return new StoredZip(entries, prefix, tables.getFirst().getValue());
    }

    private static boolean isLittle(MemorySegment order) {
        byte[] little = "little".getBytes(StandardCharsets.US_ASCII);
        return order.mismatch(MemorySegment.ofArray(little)) == -1;
    }

    @Override
    public MemorySegment table() {
        return table;
    }

    @Override
    public MemorySegment storage(String key) throws MalformedException {
        MemorySegment found = entries.get(prefix + "data/" + key);
        if (found == null) {
            throw new MalformedException("the zip file has no data/" + key);
        }
        return found;
    }

    private static String name(MemorySegment entry, long at, int bytes) {
        byte[] name = entry.asSlice(at, bytes).toArray(ValueLayout.JAVA_BYTE);
        return new String(name, StandardCharsets.UTF_8);
    }

    private static int u16(MemorySegment from, long at) {
        return Short.toUnsignedInt(from.get(U16, at));
    }

    private static long u32(MemorySegment from, long at) {
        return Integer.toUnsignedLong(from.get(U32, at));
    }
}
