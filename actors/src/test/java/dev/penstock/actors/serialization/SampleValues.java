package dev.penstock.actors.serialization;

import akka.actor.typed.ActorRef;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.spi.RankGrid;
import java.lang.reflect.Constructor;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.SplittableRandom;

/** Makes instances of any record that may travel, from its components. */
final class SampleValues {
    private final SplittableRandom random;
    private final ActorRef<?> ref;

    SampleValues(long seed, ActorRef<?> ref) {
        this.random = new SplittableRandom(seed);
        this.ref = ref;
    }

    Object of(Class<?> record) {
        return of(record, 0);
    }

    private Object of(Type type, int depth) {
        if (type instanceof ParameterizedType parameterized) {
            return parameterized(parameterized, depth);
        }
        Class<?> plain = (Class<?>) type;
        if (plain == MirrorLayout.class) {
            return MirrorLayout.ring(2 + random.nextInt(4)); // refuses any holders
        }
        if (plain == RankGrid.class) { // refuses any shards
            return new RankGrid(
                    3, 4, 1 + random.nextInt(3), 1 + random.nextInt(3), List.of(1, 4, 2));
        }
        if (plain == TensorMesh.class) { // refuses sides that do not suit
            int side = 2 + random.nextInt(3);
            return new TensorMesh(TensorMesh.Kind.LAYERS, side, side, 1 + random.nextInt(3));
        }
        if (plain.isRecord()) {
            return record(plain, depth);
        }
        if (plain.isEnum()) {
            return plain.getEnumConstants()[random.nextInt(plain.getEnumConstants().length)];
        }
        if (plain.isSealed()) {
            Class<?>[] kinds = plain.getPermittedSubclasses();
            return of(kinds[depth > 4 ? 0 : random.nextInt(kinds.length)], depth);
        }
        return scalar(plain);
    }

    private Object record(Class<?> type, int depth) {
        RecordComponent[] components = type.getRecordComponents();
        Object[] values =
                Arrays.stream(components)
                        .map(component -> of(component.getGenericType(), depth + 1))
                        .toArray();
        try {
            Constructor<?> constructor =
                    type.getDeclaredConstructor(
                            Arrays.stream(components)
                                    .map(RecordComponent::getType)
                                    .toArray(Class<?>[]::new));
            constructor.setAccessible(true);
            return constructor.newInstance(values);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("cannot make a " + type, e);
        }
    }

    private Object parameterized(ParameterizedType type, int depth) {
        Type argument = type.getActualTypeArguments()[0];
        if (type.getRawType() == ActorRef.class) {
            return ref;
        }
        if (type.getRawType() == Optional.class) {
            return random.nextBoolean() ? Optional.empty() : Optional.of(of(argument, depth + 1));
        }
        List<Object> list = new ArrayList<>();
        for (int i = depth > 4 ? 3 : random.nextInt(3); i < 3; i++) {
            list.add(of(argument, depth + 1));
        }
        return List.copyOf(list);
    }

    private Object scalar(Class<?> type) {
        int number = 1 + random.nextInt(1000); // a size may be required to be there
        return switch (type.getSimpleName()) {
            case "int", "Integer" -> number;
            case "long", "Long" -> number * 1_000_000_000_000L;
            case "double", "Double" -> number / 7.0;
            case "float", "Float" -> number / 7f;
            case "boolean", "Boolean" -> random.nextBoolean();
            case "String" -> "text ü " + number;
            case "Duration" -> Duration.ofNanos(number * 1_000_001L);
            case "int[]" -> random.ints(number % 5).toArray();
            case "long[]" -> random.longs(number % 5).toArray();
            case "double[]" -> random.doubles(number % 5).toArray();
            case "OptionalInt" ->
                    random.nextBoolean() ? OptionalInt.of(number) : OptionalInt.empty();
            case "OptionalLong" ->
                    random.nextBoolean() ? OptionalLong.of(number) : OptionalLong.empty();
            case "OptionalDouble" ->
                    random.nextBoolean() ? OptionalDouble.of(number) : OptionalDouble.empty();
            default -> throw new AssertionError("no sample of " + type);
        };
    }
}
