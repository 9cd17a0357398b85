package dev.penstock.actors.exploration;

import dev.penstock.actors.spi.RunPlan;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.objenesis.Objenesis;
import org.objenesis.ObjenesisStd;

/**
 * Copies whatever an object consists of, and describes it by a number, so that states of a program
 * can be kept and compared. Records, enums and what the JDK calls immutable are values: copies
 * share them.
 */
final class ObjectGraph {
    private static final Objenesis OBJENESIS = new ObjenesisStd();

    /** Containers that may change, by their class. */
    private static final Map<Class<?>, Supplier<Object>> CONTAINERS =
            Map.of(
                    ArrayList.class, ArrayList::new,
                    ArrayDeque.class, ArrayDeque::new,
                    HashSet.class, HashSet::new,
                    LinkedHashSet.class, LinkedHashSet::new,
                    HashMap.class, HashMap::new,
                    LinkedHashMap.class, LinkedHashMap::new,
                    TreeMap.class, TreeMap::new,
                    TreeSet.class, TreeSet::new);

    private static final ClassValue<Field[]> FIELDS =
            new ClassValue<>() {
                @Override
                protected Field[] computeValue(Class<?> type) {
                    List<Field> fields = new ArrayList<>();
                    for (Class<?> each = type;
                            each != null && each != Object.class;
                            each = each.getSuperclass()) {
                        for (Field field : each.getDeclaredFields()) {
                            if (!Modifier.isStatic(field.getModifiers())) {
                                field.setAccessible(true);
                                fields.add(field);
                            }
                        }
                    }
                    return fields.toArray(Field[]::new);
                }
            };

    private final IdentityHashMap<Object, Object> met = new IdentityHashMap<>();
    private final long now;
    private long hash = 1;

    private ObjectGraph(long now) {
        this.now = now;
    }

    // ---- copies ---------------------------------------------------------------------------------

    /** A copy that shares nothing with it that may change. */
    @SuppressWarnings("unchecked")
    static <T> T copy(T root) {
        return (T) new ObjectGraph(0).copied(root);
    }

    private Object copied(Object from) {
        Class<?> type = from.getClass();
        if (isValue(type)) {
            return from;
        }
        if (from instanceof Shared<?> shared) {
            return shared.copy();
        }
        if (from instanceof BitSet bits) {
            return bits.clone();
        }
        Object before = met.get(from);
        if (before != null) {
            return before;
        }
        Supplier<Object> container = CONTAINERS.get(type);
        if (container != null) {
            return copyElements(from, container.get());
        }
        if (type.isArray()) {
            return copyArray(from);
        }
        if (type.isHidden() || !type.getName().startsWith("dev.penstock.")) {
            throw new IllegalStateException("no way to copy a " + type);
        }
        Object to = OBJENESIS.newInstance(type);
        met.put(from, to);
        try {
            for (Field field : FIELDS.get(type)) {
                Object value = field.get(from);
                field.set(to, value == null ? null : copied(value));
            }
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
        return to;
    }

    @SuppressWarnings("unchecked")
    private Object copyElements(Object from, Object to) {
        met.put(from, to);
        if (from instanceof Map<?, ?> map) {
            map.forEach((key, value) -> ((Map<Object, Object>) to).put(key, copied(value)));
        } else {
            ((Collection<?>) from).forEach(each -> ((Collection<Object>) to).add(copied(each)));
        }
        return to;
    }

    private Object copyArray(Object from) {
        int length = Array.getLength(from);
        Object to = Array.newInstance(from.getClass().getComponentType(), length);
        met.put(from, to);
        if (from.getClass().getComponentType().isPrimitive()) {
            System.arraycopy(from, 0, to, 0, length);
            return to;
        }
        for (int i = 0; i < length; i++) {
            Object each = Array.get(from, i);
            Array.set(to, i, each == null ? null : copied(each));
        }
        return to;
    }

    private static boolean isValue(Class<?> type) {
        String name = type.getName();
        return type.isRecord()
                || type.isEnum()
                || name.startsWith("java.lang.")
                || name.startsWith("java.time.")
                || name.startsWith("java.util.Optional")
                || name.startsWith("java.util.ImmutableCollections")
                || name.startsWith("java.util.Collections");
    }

    // ---- numbers --------------------------------------------------------------------------------

    /**
     * Two states with the same number are the same, but for one chance in 2^64 per pair. Times,
     * which are fields named after nanoseconds, count by how long they are ago.
     */
    static long numberOf(Object root, long now) {
        var graph = new ObjectGraph(now);
        graph.add(root);
        return graph.hash;
    }

    private void add(@Nullable Object value) {
        switch (value) {
            case null -> mix(7);
            case Shared<?> shared -> mix(shared.number(now));
            case RunPlan _ -> mix(5); // the same in all states
            case String text -> mix(text.hashCode());
            case Double number -> mix(Double.doubleToLongBits(number));
            case Number number -> mix(number.longValue());
            case Boolean bit -> mix(bit ? 11 : 13);
            case Enum<?> constant -> mix(17 + constant.ordinal());
            case Optional<?> optional -> add(optional.orElse(null));
            case OptionalInt optional -> mix(optional.orElse(Integer.MIN_VALUE));
            case OptionalLong optional -> mix(optional.orElse(Long.MIN_VALUE));
            case OptionalDouble optional ->
                    mix(Double.doubleToLongBits(optional.orElse(Double.NaN)));
            case java.time.Duration duration -> mix(duration.toNanos());
            case BitSet bits -> mix(bits.hashCode());
            case Map<?, ?> map -> addMap(map);
            case Set<?> set when isUnordered(set) -> addUnordered(set);
            case Collection<?> list -> {
                mix(list.size());
                list.forEach(this::add);
            }
            default -> addObject(value);
        }
    }

    private static boolean isUnordered(Set<?> set) {
        return !(set instanceof LinkedHashSet || set instanceof SortedSet);
    }

    private void addMap(Map<?, ?> map) {
        if (map instanceof LinkedHashMap || map instanceof SortedMap) {
            mix(map.size());
            map.forEach(
                    (key, value) -> {
                        add(key);
                        add(value);
                    });
        } else {
            addUnordered(map.entrySet());
        }
    }

    /** Elements of such a set are values. */
    private void addUnordered(Set<?> set) {
        long sum = set.size();
        for (Object each : set) {
            var element = new ObjectGraph(now);
            if (each instanceof Map.Entry<?, ?> entry) {
                element.add(entry.getKey());
                element.add(entry.getValue());
            } else {
                element.add(each);
            }
            sum += element.hash;
        }
        mix(sum);
    }

    private void addObject(Object value) {
        Class<?> type = value.getClass();
        Object before = met.putIfAbsent(value, met.size());
        if (before != null && !type.isRecord()) {
            mix((Integer) before);
            return;
        }
        mix(type.getName().hashCode());
        if (type.isArray()) {
            int length = Array.getLength(value);
            mix(length);
            for (int i = 0; i < length; i++) {
                add(Array.get(value, i));
            }
            return;
        }
        if (!type.getName().startsWith("dev.penstock.")) {
            throw new IllegalStateException("no number for a " + type);
        }
        try {
            for (Field field : FIELDS.get(type)) {
                if (field.getType() == long.class) {
                    long number = field.getLong(value);
                    mix(isTime(field) ? now - number : number);
                } else if (isOrderless(field) && field.get(value) instanceof Set<?> set) {
                    addUnordered(set);
                } else {
                    add(field.get(value));
                }
            }
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Where there are no spares, which node comes first is asked only of those of one rank. */
    private static boolean isOrderless(Field field) {
        return field.getName().equals("nodes")
                && field.getDeclaringClass().getSimpleName().equals("Placer");
    }

    private static boolean isTime(Field field) {
        String name = field.getName();
        return name.endsWith("Nanos") || name.equals("now");
    }

    private void mix(long value) {
        long mixed = (hash ^ value) * 0x9E3779B97F4A7C15L;
        hash = mixed ^ (mixed >>> 29);
    }
}
