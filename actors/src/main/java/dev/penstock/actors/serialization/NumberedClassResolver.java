package dev.penstock.actors.serialization;

import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.Registration;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.util.DefaultClassResolver;
import org.jspecify.annotations.Nullable;

/**
 * Classes by number only: a name on the wire would make the reader load classes. And only by our
 * numbers: every Kryo has strings and primitives among its own, and its strings are allocated as
 * long as they claim to be.
 */
final class NumberedClassResolver extends DefaultClassResolver {
    private final int firstId;

    /**
     * @param firstId numbers below are Kryo's own and never travel
     */
    NumberedClassResolver(int firstId) {
        this.firstId = firstId;
    }

    @Override
    public @Nullable Registration readClass(Input input) {
        Registration registration = super.readClass(input);
        if (registration != null && registration.getId() < firstId) {
            throw new KryoException(
                    "expected a message's number, at least %d, got %d"
                            .formatted(firstId, registration.getId()));
        }
        return registration;
    }

    @Override
    protected Registration readName(Input input) {
        throw new KryoException("a class name on a wire that carries numbers only");
    }
}
