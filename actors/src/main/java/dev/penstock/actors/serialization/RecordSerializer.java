package dev.penstock.actors.serialization;

import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.esotericsoftware.kryo.serializers.ImmutableSerializer;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;

/**
 * A record as its components in order, each in the form of its declared type, so that a list cannot
 * come back with elements of another type; then the canonical constructor, whose checks hold for
 * what comes from outside, too.
 */
final class RecordSerializer extends ImmutableSerializer<Object> {
    private final Class<?> type;
    private final List<Method> accessors;
    private final List<WireForm> forms;
    private final Constructor<?> constructor;

    RecordSerializer(Class<?> type, List<WireForm> forms) {
        this.type = type;
        this.forms = List.copyOf(forms);
        RecordComponent[] components = type.getRecordComponents();
        this.accessors = Arrays.stream(components).map(RecordComponent::getAccessor).toList();
        accessors.forEach(accessor -> accessor.setAccessible(true));
        try {
            constructor =
                    type.getDeclaredConstructor(
                            Arrays.stream(components)
                                    .map(RecordComponent::getType)
                                    .toArray(Class<?>[]::new));
            constructor.setAccessible(true);
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(type + " has no canonical constructor", e);
        }
    }

    @Override
    public void write(Kryo kryo, Output output, Object message) {
        for (int i = 0; i < forms.size(); i++) {
            Object value = component(i, message);
            if (value == null) {
                throw new KryoException(
                        "%s.%s is null; nulls do not travel, use Optional"
                                .formatted(type.getSimpleName(), accessors.get(i).getName()));
            }
            forms.get(i).write(kryo, output, value);
        }
    }

    private Object component(int index, Object message) {
        try {
            return accessors.get(index).invoke(message);
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new KryoException("cannot read a component of " + type.getName(), e);
        }
    }

    @Override
    public Object read(Kryo kryo, Input input, Class<? extends Object> ignored) {
        Object[] values = new Object[forms.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = forms.get(i).read(kryo, input);
        }
        try {
            return constructor.newInstance(values);
        } catch (InvocationTargetException e) {
            throw new KryoException(
                    "%s refuses its components: %s".formatted(type.getName(), e.getCause()), e);
        } catch (InstantiationException | IllegalAccessException e) {
            throw new KryoException("cannot build a " + type.getName(), e);
        }
    }
}
