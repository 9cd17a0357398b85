package dev.penstock.actors.serialization;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import com.esotericsoftware.kryo.KryoException;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Finds every record that can occur in the given protocols and the form of each of its components.
 * A component without a form is a problem, and all problems are collected.
 */
final class WireTypes {
    private final ScalarForms scalars = new ScalarForms();
    private final Supplier<ActorRefResolver> resolver;
    private final Map<Class<?>, List<WireForm>> records = new LinkedHashMap<>();
    private final List<String> problems = new ArrayList<>();

    WireTypes(List<Class<?>> protocols, Supplier<ActorRefResolver> resolver) {
        this.resolver = resolver;
        protocols.forEach(this::addProtocol);
    }

    /** Records with the forms of their components, in the order found. */
    Map<Class<?>, List<WireForm>> records() {
        return records;
    }

    List<String> problems() {
        return problems;
    }

    private void addProtocol(Class<?> type) {
        if (type.isRecord()) {
            addRecord(type);
        } else if (type.isSealed()) {
            for (Class<?> permitted : type.getPermittedSubclasses()) {
                if (!Modifier.isPrivate(permitted.getModifiers())) {
                    addProtocol(permitted);
                }
            }
        } else {
            problems.add(type.getName() + ": expected a record or a sealed interface of records");
        }
    }

    private void addRecord(Class<?> type) {
        if (records.containsKey(type)) {
            return;
        }
        List<WireForm> forms = new ArrayList<>();
        records.put(type, forms); // before its components, which may hold the type again
        for (RecordComponent component : type.getRecordComponents()) {
            String place = type.getName() + "." + component.getName();
            forms.add(formOf(component.getGenericType(), place));
        }
    }

    private WireForm formOf(Type type, String place) {
        if (type instanceof ParameterizedType parameterized) {
            return parameterizedForm(parameterized, place);
        }
        if (type instanceof Class<?> plain) {
            WireForm scalar = scalars.of(plain);
            return scalar != null ? scalar : classForm(plain, place);
        }
        return noForm(type, place);
    }

    private WireForm classForm(Class<?> type, String place) {
        if (type.isEnum()) {
            return enumForm(type);
        }
        if (type.isRecord()) {
            addRecord(type);
            return WireForm.of(
                    (kryo, output, value) -> kryo.writeObject(output, value),
                    (kryo, input) -> kryo.readObject(input, type));
        }
        if (type.isInterface() && type.isSealed()) {
            addProtocol(type);
            return sealedForm(type);
        }
        return noForm(type, place);
    }

    private WireForm parameterizedForm(ParameterizedType type, String place) {
        Type argument = type.getActualTypeArguments()[0];
        if (type.getRawType() == List.class) {
            return listForm(formOf(argument, place));
        }
        if (type.getRawType() == Optional.class) {
            return optionalForm(formOf(argument, place));
        }
        if (type.getRawType() == ActorRef.class) {
            return refForm();
        }
        return noForm(type, place);
    }

    private WireForm noForm(Type type, String place) {
        problems.add(
                "%s: %s has no form on the wire; expected a primitive, String, enum, Duration, int[], long[], double[], record, sealed interface, or a List, Optional or ActorRef of these"
                        .formatted(place, type.getTypeName()));
        return WireForm.of((_, _, _) -> {}, (_, _) -> place);
    }

    private static WireForm enumForm(Class<?> type) {
        Object[] constants = type.getEnumConstants();
        return WireForm.of(
                (_, output, value) -> Lengths.write(output, List.of(constants).indexOf(value)),
                (_, input) -> {
                    int index = input.readVarInt(true);
                    if (index < 0 || index >= constants.length) {
                        throw new KryoException(
                                "%s has no constant number %d".formatted(type.getName(), index));
                    }
                    return constants[index];
                });
    }

    private static WireForm sealedForm(Class<?> type) {
        return WireForm.of(
                (kryo, output, value) -> kryo.writeClassAndObject(output, value),
                (kryo, input) -> {
                    Object value = kryo.readClassAndObject(input);
                    if (!type.isInstance(value)) {
                        throw new KryoException(
                                "expected a %s, got %s".formatted(type.getName(), value));
                    }
                    return value;
                });
    }

    private static WireForm listForm(WireForm element) {
        return WireForm.of(
                (kryo, output, value) -> {
                    List<?> list = (List<?>) value;
                    Lengths.write(output, list.size());
                    list.forEach(each -> element.write(kryo, output, each));
                },
                (kryo, input) -> {
                    int length = Lengths.read(input, 1);
                    List<Object> list = new ArrayList<>(length);
                    for (int i = 0; i < length; i++) {
                        list.add(element.read(kryo, input));
                    }
                    return List.copyOf(list);
                });
    }

    private static WireForm optionalForm(WireForm element) {
        return WireForm.of(
                (kryo, output, value) -> {
                    Optional<?> optional = (Optional<?>) value;
                    output.writeByte(optional.isPresent() ? 1 : 0);
                    optional.ifPresent(each -> element.write(kryo, output, each));
                },
                (kryo, input) ->
                        ScalarForms.readBoolean(input)
                                ? Optional.of(element.read(kryo, input))
                                : Optional.empty());
    }

    /** Akka's resolver must never see an empty path. */
    private WireForm refForm() {
        return WireForm.of(
                (_, output, value) ->
                        ScalarForms.writeText(
                                output, resolver.get().toSerializationFormat((ActorRef<?>) value)),
                (_, input) -> {
                    String path = ScalarForms.readText(input);
                    if (path.isBlank()) {
                        throw new KryoException("an empty actor reference");
                    }
                    return resolver.get().resolveActorRef(path);
                });
    }
}
