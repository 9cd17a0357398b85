package dev.penstock.runtime.torchfile;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.penstock.runtime.safetensors.StoredType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs the few opcodes of pickle (version 2) that a dictionary of tensors is made of: numbers,
 * texts, tuples, lists, dictionaries, and the names of {@link Known}. Where Python would call a
 * function, this makes a record of the arguments. Any other opcode, name or use is refused.
 *
 * <p>A value may be in many places at once, even inside itself, so that values are never compared,
 * hashed or printed. The bytes that are read are bounded, and so is the memory that the values of
 * them take, which is counted before it is taken: a byte can be a dictionary.
 */
final class Pickle {
    /** Enough for a hundred thousand tensors. */
    private static final long MAX_BYTES = 32 << 20;

    /**
     * Enough for a hundred thousand tensors, each of some forty values; the figures by which values
     * are counted are a Java machine's, rounded up.
     */
    private static final long MAX_MEMORY = 256 << 20;

    private static final int REFERENCE = 8;
    private static final int NUMBER = 24;
    private static final int TEXT = 64;
    private static final int LIST = 64;
    private static final int ENTRY = 64;
    private static final int DICTIONARY = 160;
    private static final int RECORD = 64;

    private static final int LONGEST_NAME = 200;
    private static final ValueLayout.OfByte U8 = ValueLayout.JAVA_BYTE;
    private static final ValueLayout.OfShort U16 =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(LITTLE_ENDIAN);
    private static final ValueLayout.OfInt I32 =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(LITTLE_ENDIAN);

    /** A value without a meaning here: None, a float. */
    private enum Other {
        NONE,
        FLOAT
    }

    /** A tuple or a list. */
    record Items(List<Object> items) {
        Object get(int index) {
            return items.get(index);
        }

        int size() {
            return items.size();
        }
    }

    /** A dictionary; keys that are no text are only counted. */
    static final class Dictionary {
        private final Map<String, Object> values = new LinkedHashMap<>();
        private int strange;

        Map<String, Object> values() {
            return values;
        }

        int strange() {
            return strange;
        }
    }

    /**
     * Elements in the file.
     *
     * @param elements as the table says
     */
    record Storage(StoredType type, String key, long elements) {}

    /** A tensor: which elements of a storage it has; as the table says, nothing checked. */
    record View(Storage storage, long offset, List<Long> shape, List<Long> strides) {}

    private final MemorySegment bytes;
    private final List<Object> stack = new ArrayList<>();
    private final List<Integer> marks = new ArrayList<>();
    private final Map<Long, Object> memo = new HashMap<>();
    private final Map<String, Storage> storages = new HashMap<>();
    private long at;
    private long memory;

    private Pickle(MemorySegment bytes) {
        this.bytes = bytes;
    }

    /**
     * Runs a pickle.
     *
     * @param bytes begin with it; something may follow
     */
    static Pickle run(MemorySegment bytes) throws MalformedException {
        Pickle pickle = new Pickle(bytes.asSlice(0, Math.min(MAX_BYTES, bytes.byteSize())));
        while (pickle.step()) {}
        return pickle;
    }

    /** Returns what the pickle is of. */
    Object result() {
        return stack.getFirst();
    }

    /** Returns the bytes that it takes. */
    long bytes() {
        return at;
    }

    /** Returns all storages that it names, by key. */
    Map<String, Storage> storages() {
        return storages;
    }

    /** Runs one opcode; returns false after the last. */
    private boolean step() throws MalformedException {
        int opcode = u8();
        switch (opcode) {
            case 0x80 -> u8(); // PROTO
            case '(' -> {
                count(NUMBER);
                marks.add(stack.size());
            }
            case ')' -> {
                count(LIST);
                push(new Items(List.of()));
            }
            case ']' -> {
                count(LIST);
                push(new Items(new ArrayList<>()));
            }
            case '}' -> {
                count(DICTIONARY);
                push(new Dictionary());
            }
            case 't' -> push(new Items(fromMark()));
            case 0x85 -> pushTuple(1);
            case 0x86 -> pushTuple(2);
            case 0x87 -> pushTuple(3);
            case 'N' -> push(Other.NONE);
            case 0x88 -> push(true);
            case 0x89 -> push(false);
            case 'K' -> pushNumber(u8());
            case 'M' -> pushNumber(Short.toUnsignedInt(bytes.get(U16, take(2))));
            case 'J' -> pushNumber(bytes.get(I32, take(4)));
            case 0x8a -> pushNumber(longOf(u8()));
            case 'G' -> {
                take(8);
                push(Other.FLOAT);
            }
            case 'X' -> push(text(Integer.toUnsignedLong(bytes.get(I32, take(4)))));
            case 'c' -> push(global());
            case 'q' -> remember(u8());
            case 'r' -> remember(Integer.toUnsignedLong(bytes.get(I32, take(4))));
            case 'h' -> push(recall(u8()));
            case 'j' -> push(recall(Integer.toUnsignedLong(bytes.get(I32, take(4)))));
            case 'Q' -> push(storage(pop()));
            case 'R' -> {
                Object arguments = pop();
                push(call(pop(), arguments));
            }
            case 'a' -> {
                Object item = pop();
                count(REFERENCE);
                list().items().add(item);
            }
            case 'e' -> {
                List<Object> items = fromMark();
                count((long) items.size() * REFERENCE);
                list().items().addAll(items);
            }
            case 's' -> {
                Object value = pop();
                put(pop(), value);
            }
            case 'u' -> {
                List<Object> items = fromMark();
                if (items.size() % 2 != 0) {
                    throw wrong("a key without a value");
                }
                for (int i = 0; i < items.size(); i += 2) {
                    put(items.get(i), items.get(i + 1));
                }
            }
            case 'b' -> build();
            case '.' -> {
                if (stack.size() != 1 || !marks.isEmpty()) {
                    throw wrong("an end with %d values left".formatted(stack.size()));
                }
                return false;
            }
            default -> throw wrong("opcode 0x%02x".formatted(opcode));
        }
        return true;
    }

    /** Attributes of a dictionary, such as torch's {@code _metadata}, are not needed. */
    private void build() throws MalformedException {
        pop();
        if (!(top() instanceof Dictionary)) {
            throw wrong("attributes of something that is no dictionary");
        }
    }

    private void pushNumber(long number) throws MalformedException {
        count(NUMBER);
        push(number);
    }

    private void remember(long key) throws MalformedException {
        count(ENTRY);
        memo.put(key, top());
    }

    private void pushTuple(int size) throws MalformedException {
        count(LIST + (long) size * REFERENCE);
        List<Object> items = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            items.addFirst(pop());
        }
        push(new Items(List.copyOf(items)));
    }

    private void put(Object key, Object value) throws MalformedException {
        if (!(top() instanceof Dictionary dictionary)) {
            throw wrong("a key and a value for something that is no dictionary");
        }
        count(ENTRY);
        if (!(key instanceof String text)) {
            dictionary.strange++;
        } else if (dictionary.values().put(text, value) != null) {
            throw wrong("the key '%s' twice".formatted(text));
        }
    }

    private Items list() throws MalformedException {
        if (top() instanceof Items items && items.items() instanceof ArrayList) {
            return items;
        }
        throw wrong("items for something that is no list");
    }

    private Known global() throws MalformedException {
        count(TEXT);
        String module = line();
        String name = line();
        return Known.of(module, name)
                .orElseThrow(
                        () ->
                                wrong(
                                        "the Python name %s.%s, which is none of a dictionary of tensors"
                                                .formatted(module, name)));
    }

    private Storage storage(Object id) throws MalformedException {
        boolean good =
                id instanceof Items items
                        && (items.size() == 5 || items.size() == 6)
                        && "storage".equals(items.get(0));
        if (good
                && id instanceof Items items
                && items.get(1) instanceof Known type
                && type.storage().isPresent()
                && items.get(2) instanceof String key
                && items.get(4) instanceof Long elements
                && (items.size() == 5 || items.get(5) == Other.NONE)) {
            count(RECORD + ENTRY);
            Storage storage = new Storage(type.storage().get(), key, elements);
            Storage before = storages.putIfAbsent(key, storage);
            if (before != null && !before.equals(storage)) {
                throw wrong("storage %s with two types or sizes".formatted(key));
            }
            return storage;
        }
        throw wrong("a reference that is none to a storage");
    }

    private Object call(Object function, Object given) throws MalformedException {
        if (!(given instanceof Items arguments) || !(function instanceof Known known)) {
            throw wrong("a call of something that is no function");
        }
        return switch (known) {
            case ORDERED_DICT -> {
                if (arguments.size() != 0) {
                    throw wrong("an OrderedDict made of something");
                }
                count(DICTIONARY);
                yield new Dictionary();
            }
            case REBUILD_TENSOR -> view(arguments);
            case REBUILD_PARAMETER -> {
                if (arguments.size() == 0 || !(arguments.get(0) instanceof View view)) {
                    throw wrong("a parameter that is no tensor");
                }
                yield view;
            }
            case DOUBLE, FLOAT, HALF, BFLOAT16, LONG, INT, SHORT, CHAR, BYTE, BOOL ->
                    throw wrong("a call of a storage's type");
        };
    }

    private View view(Items arguments) throws MalformedException {
        if (arguments.size() >= 6
                && arguments.size() <= 7
                && arguments.get(0) instanceof Storage storage
                && arguments.get(1) instanceof Long offset
                && arguments.get(2) instanceof Items shape
                && arguments.get(3) instanceof Items strides) {
            count(RECORD + 2L * (LIST + (long) TensorView.MAX_DIMENSIONS * REFERENCE));
            return new View(storage, offset, longs(shape), longs(strides));
        }
        throw wrong("a tensor without storage, offset, shape and strides");
    }

    private List<Long> longs(Items items) throws MalformedException {
        List<Long> longs = new ArrayList<>();
        if (items.size() > TensorView.MAX_DIMENSIONS) {
            throw wrong("a tensor of %d dimensions".formatted(items.size()));
        }
        for (Object item : items.items()) {
            if (!(item instanceof Long number)) {
                throw wrong("a dimension that is no number");
            }
            longs.add(number);
        }
        return longs;
    }

    private Object recall(long key) throws MalformedException {
        Object value = memo.get(key);
        if (value == null) {
            throw wrong("a reference to value %d, which there is not".formatted(key));
        }
        return value;
    }

    private List<Object> fromMark() throws MalformedException {
        if (marks.isEmpty()) {
            throw wrong("values without a beginning");
        }
        List<Object> above = stack.subList(marks.removeLast(), stack.size());
        count(LIST + (long) above.size() * REFERENCE);
        List<Object> items = List.copyOf(above);
        above.clear();
        return items;
    }

    private void push(Object value) throws MalformedException {
        count(REFERENCE);
        stack.add(value);
    }

    /**
     * Refuses to take memory beyond the limit; none that was taken is given back before the end.
     */
    private void count(long more) throws MalformedException {
        memory += more;
        if (memory > MAX_MEMORY) {
            throw wrong(
                    "more values than %d MiB of memory hold, which no dictionary of tensors has"
                            .formatted(MAX_MEMORY >> 20));
        }
    }

    private Object top() throws MalformedException {
        if (stack.size() <= floor()) {
            throw wrong("a missing value");
        }
        return stack.getLast();
    }

    private Object pop() throws MalformedException {
        Object value = top();
        stack.removeLast();
        return value;
    }

    /** Values below the last mark are out of reach until it is removed. */
    private int floor() {
        return marks.isEmpty() ? 0 : marks.getLast();
    }

    private long longOf(int size) throws MalformedException {
        if (size > Long.BYTES) {
            throw wrong("a number of %d bytes".formatted(size));
        }
        long from = take(size);
        long value = 0;
        for (int i = 0; i < size; i++) {
            value |= Byte.toUnsignedLong(bytes.get(U8, from + i)) << (8 * i);
        }
        int unused = Long.SIZE - 8 * size;
        return size == 0 ? 0 : value << unused >> unused;
    }

    private String text(long size) throws MalformedException {
        long from = take(size);
        count(TEXT + 2 * size);
        byte[] utf8 = bytes.asSlice(from, size).toArray(U8);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(utf8)).toString();
        } catch (CharacterCodingException e) {
            throw wrong("a text that is not UTF-8");
        }
    }

    private String line() throws MalformedException {
        StringBuilder line = new StringBuilder();
        for (int next = u8(); next != '\n'; next = u8()) {
            boolean plain = next > ' ' && next < 0x7f;
            if (!plain || line.length() == LONGEST_NAME) {
                throw wrong("a Python name that is damaged");
            }
            line.append((char) next);
        }
        return line.toString();
    }

    private int u8() throws MalformedException {
        return Byte.toUnsignedInt(bytes.get(U8, take(1)));
    }

    /** Returns where the next bytes begin, and goes behind them. */
    private long take(long count) throws MalformedException {
        if (count > bytes.byteSize() - at) {
            throw new MalformedException(
                    "the table of contents ends at byte %d (cut short, or larger than %d)"
                            .formatted(bytes.byteSize(), MAX_BYTES));
        }
        at += count;
        return at - count;
    }

    private MalformedException wrong(String what) {
        return new MalformedException(
                "byte %d of the table of contents has %s; nothing of the file was run"
                        .formatted(at, what));
    }
}
