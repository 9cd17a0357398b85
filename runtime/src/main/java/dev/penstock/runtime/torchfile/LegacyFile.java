package dev.penstock.runtime.torchfile;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * The form that torch wrote before version 1.6, as in repositories of 2019: five pickles in a row
 * (a magic number, the version, facts on the machine, the table of contents, the keys of the
 * storages), then for each storage in the order of the keys its number of elements and its
 * elements.
 */
final class LegacyFile implements Container {
    /** The pickle of the magic number. */
    private static final byte[] START = HexFormat.of().parseHex("80028a0a6cfc9c46f9206aa850192e");

    private static final int VERSION = 1001;
    private static final ValueLayout.OfLong U64 =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(LITTLE_ENDIAN);

    private final MemorySegment table;
    private final Map<String, MemorySegment> storages;

    private LegacyFile(MemorySegment table, Map<String, MemorySegment> storages) {
        this.table = table;
        this.storages = storages;
    }

    /** Returns whether a file begins as such files do. */
    static boolean isOne(MemorySegment file) {
        return file.byteSize() >= START.length
                && file.asSlice(0, START.length).mismatch(MemorySegment.ofArray(START)) == -1;
    }

    /** Reads everything but the elements. */
    static LegacyFile read(MemorySegment file) throws MalformedException {
        long at = START.length;
        Pickle version = Pickle.run(file.asSlice(at));
        if (!(version.result() instanceof Long number) || number != VERSION) {
            throw new MalformedException("expected the old form's version " + VERSION);
        }
        at += version.bytes();
        at += Pickle.run(file.asSlice(at)).bytes();
        MemorySegment table = file.asSlice(at);
        Pickle contents = Pickle.run(table);
        at += contents.bytes();
        Pickle keys = Pickle.run(file.asSlice(at));
        at += keys.bytes();
        if (!(keys.result() instanceof Pickle.Items items)) {
            throw new MalformedException("expected the keys of the storages behind the table");
        }
        return new LegacyFile(table, storages(file, at, items.items(), contents.storages()));
    }

    private static Map<String, MemorySegment> storages(
            MemorySegment file, long begin, List<Object> keys, Map<String, Pickle.Storage> wanted)
            throws MalformedException {
        Map<String, MemorySegment> storages = new HashMap<>();
        long at = begin;
        for (Object key : keys) {
            Pickle.Storage storage = key instanceof String text ? wanted.get(text) : null;
            if (storage == null) {
                throw new MalformedException("a storage has a key that no tensor names");
            }
            if (file.byteSize() - at < Long.BYTES) {
                throw new MalformedException("the file ends before storage " + storage.key());
            }
            long elements = file.get(U64, at);
            at += Long.BYTES;
            long most = (file.byteSize() - at) / storage.type().bytes();
            if (elements < 0 || elements > most) {
                throw new MalformedException(
                        "storage %s of %d elements does not fit the file"
                                .formatted(storage.key(), elements));
            }
            long bytes = elements * storage.type().bytes();
            storages.put(storage.key(), file.asSlice(at, bytes));
            at += bytes;
        }
        return storages;
    }

    @Override
    public MemorySegment table() {
        return table;
    }

    @Override
    public MemorySegment storage(String key) throws MalformedException {
        MemorySegment found = storages.get(key);
        if (found == null) {
            throw new MalformedException("the file has no storage " + key);
        }
        return found;
    }
}
