package dev.penstock.actors.serialization;

import akka.actor.ExtendedActorSystem;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.javadsl.Adapter;
import akka.serialization.ByteBufferSerializer;
import akka.serialization.SerializerWithStringManifest;
import com.esotericsoftware.kryo.Kryo;
import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Input;
import com.esotericsoftware.kryo.io.Output;
import com.esotericsoftware.kryo.util.Pool;
import java.io.NotSerializableException;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Akka's serializer of {@link WireMessage}s. The manifest is the registry's fingerprint, so a
 * message of another version is refused before a byte of it is read. Safe for any thread.
 */
public final class KryoMessageSerializer extends SerializerWithStringManifest
        implements ByteBufferSerializer {
    private static final int IDENTIFIER = 720_825;
    private static final int FIRST_BYTES = 512;

    private final KryoRegistry registry;
    private final Pool<Kryo> kryos;

    /** Made by Akka; the protocols are listed in {@code penstock.wire.protocols}. */
    public KryoMessageSerializer(ExtendedActorSystem system) {
        this(
                KryoRegistry.of(
                        protocols(system), () -> ActorRefResolver.get(Adapter.toTyped(system))));
    }

    KryoMessageSerializer(KryoRegistry registry) {
        this.registry = registry;
        this.kryos =
                new Pool<>(true, false) {
                    @Override
                    protected Kryo create() {
                        return registry.newKryo();
                    }
                };
    }

    private static List<Class<?>> protocols(ExtendedActorSystem system) {
        return KryoRegistry.load(
                system.settings().config().getStringList("penstock.wire.protocols"));
    }

    @Override
    public int identifier() {
        return IDENTIFIER;
    }

    @Override
    public String manifest(Object message) {
        return registry.fingerprint();
    }

    @Override
    public byte[] toBinary(Object message) {
        return write(message).toBytes();
    }

    @Override
    public void toBinary(Object message, ByteBuffer buffer) {
        Output output = write(message);
        buffer.put(output.getBuffer(), 0, output.position());
    }

    private Output write(Object message) {
        Kryo kryo = kryos.obtain();
        try {
            Output output = new Output(FIRST_BYTES, -1);
            kryo.writeClassAndObject(output, message);
            return output;
        } catch (KryoException e) {
            throw new IllegalArgumentException(
                    "cannot send %s: %s".formatted(message.getClass().getName(), e.getMessage()),
                    e);
        } finally {
            kryos.free(kryo);
        }
    }

    @Override
    public Object fromBinary(ByteBuffer buffer, String manifest) throws NotSerializableException {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return fromBinary(bytes, manifest);
    }

    @Override
    public Object fromBinary(byte[] bytes, String manifest) throws NotSerializableException {
        if (!manifest.equals(registry.fingerprint())) {
            throw new NotSerializableException(
                    "a message of another version: its registry is %s, ours is %s; run the same version everywhere"
                            .formatted(manifest, registry.fingerprint()));
        }
        Kryo kryo = kryos.obtain();
        try {
            Input input = new Input(bytes);
            Object message = kryo.readClassAndObject(input);
            if (message == null || !input.end()) {
                throw new KryoException(
                        "%d of %d bytes make a message".formatted(input.position(), bytes.length));
            }
            return message;
        } catch (RuntimeException e) {
            // whatever a hostile message provokes in Kryo or in a record's own checks
            NotSerializableException refusal =
                    new NotSerializableException(
                            "a message of %d bytes cannot be read: %s"
                                    .formatted(bytes.length, e.getMessage()));
            refusal.initCause(e);
            throw refusal;
        } finally {
            kryos.free(kryo);
        }
    }
}
