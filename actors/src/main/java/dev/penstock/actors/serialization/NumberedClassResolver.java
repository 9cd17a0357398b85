package dev.penstock.actors.serialization;

import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.Registration;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.util.DefaultClassResolver;

/** Classes by number only: a name on the wire would make the reader load classes. */
final class NumberedClassResolver extends DefaultClassResolver {
    @Override
    protected Registration readName(Input input) {
        throw new KryoException("a class name on a wire that carries numbers only");
    }
}
