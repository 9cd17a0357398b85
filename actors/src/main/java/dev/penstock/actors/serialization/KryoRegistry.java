package dev.penstock.actors.serialization;

import static java.nio.charset.StandardCharsets.UTF_8;

import akka.actor.typed.ActorRefResolver;
import com.esotericsoftware.kryo.Kryo;
import java.lang.reflect.RecordComponent;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What may travel: the records of the listed protocols and whatever lies in them, each under a
 * fixed number. Two processes understand each other if and only if their fingerprints are equal.
 */
public final class KryoRegistry {
    /** Numbers below are Kryo's own. */
    private static final int FIRST_ID = 100;

    private static final int MAX_DEPTH = 32;

    private final Map<Class<?>, List<WireForm>> records;
    private final List<Class<?>> types;
    private final String fingerprint;

    private KryoRegistry(WireTypes found) {
        records = found.records();
        types = List.copyOf(records.keySet());
        fingerprint = fingerprintOf(types);
    }

    /**
     * Finds all records of the protocols.
     *
     * @param protocols sealed interfaces of records, or records
     * @param resolver of the actor system that the messages belong to; asked when first needed
     * @throws IllegalArgumentException listing every type that cannot travel
     */
    public static KryoRegistry of(List<Class<?>> protocols, Supplier<ActorRefResolver> resolver) {
        WireTypes found = new WireTypes(protocols, resolver);
        if (!found.problems().isEmpty()) {
            throw new IllegalArgumentException(
                    "messages that cannot travel: " + String.join("; ", found.problems()));
        }
        return new KryoRegistry(found);
    }

    /**
     * Finds all records of the protocols of these names, for their fingerprint: it cannot read
     * actor references.
     *
     * @throws IllegalArgumentException listing every name that is no class, or every type that
     *     cannot travel
     */
    public static KryoRegistry ofProtocols(List<String> names) {
        return of(
                load(names),
                () -> {
                    throw new IllegalStateException("this registry belongs to no actor system");
                });
    }

    /**
     * Loads the protocols by name.
     *
     * @throws IllegalArgumentException listing every name that is no class
     */
    static List<Class<?>> load(List<String> names) {
        List<Class<?>> protocols = new ArrayList<>();
        List<String> problems = new ArrayList<>();
        for (String name : names) {
            try {
                protocols.add(Class.forName(name));
            } catch (ClassNotFoundException | LinkageError e) {
                problems.add(name);
            }
        }
        if (!problems.isEmpty()) {
            throw new IllegalArgumentException(
                    "penstock.wire.protocols: expected names of classes, got " + problems);
        }
        return protocols;
    }

    /** The records that may travel; entry i has number {@value #FIRST_ID} + i. */
    public List<Class<?>> types() {
        return types;
    }

    /** A hash of all numbers, names and components. */
    public String fingerprint() {
        return fingerprint;
    }

    /** A fresh Kryo for one thread at a time. */
    Kryo newKryo() {
        Kryo kryo = new Kryo(new NumberedClassResolver(FIRST_ID), null);
        kryo.setRegistrationRequired(true);
        kryo.setReferences(false);
        kryo.setMaxDepth(MAX_DEPTH);
        int id = FIRST_ID;
        for (Map.Entry<Class<?>, List<WireForm>> each : records.entrySet()) {
            kryo.register(
                    each.getKey(), new RecordSerializer(each.getKey(), each.getValue()), id++);
        }
        return kryo;
    }

    private static String fingerprintOf(List<Class<?>> types) {
        StringBuilder text = new StringBuilder();
        for (Class<?> type : types) {
            text.append(type.getName());
            for (RecordComponent component : type.getRecordComponents()) {
                text.append(' ')
                        .append(component.getName())
                        .append(':')
                        .append(component.getGenericType().getTypeName());
                if (component.getType().isEnum()) {
                    text.append(Arrays.toString(component.getType().getEnumConstants()));
                }
            }
            text.append('\n');
        }
        try {
            byte[] hash =
                    MessageDigest.getInstance("SHA-256").digest(text.toString().getBytes(UTF_8));
            return HexFormat.of().formatHex(hash, 0, 8);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
