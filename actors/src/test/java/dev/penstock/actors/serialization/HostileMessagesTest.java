package dev.penstock.actors.serialization;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Props;
import akka.actor.typed.javadsl.Behaviors;
import com.sun.management.ThreadMXBean;
import com.typesafe.config.ConfigFactory;
import java.io.NotSerializableException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * What a hostile peer may send: 200,000 messages of every protocol, random, damaged or lying about
 * lengths. Each is read or refused with one exception, and none takes much more memory than it has
 * bytes, so no heap is too small for it.
 */
@Timeout(120)
class HostileMessagesTest {
    private static final int MESSAGES = 50_000;

    /** An exception with its trace takes kilobytes. */
    private static final long MOST_BYTES = 64 << 10;

    private static final int MOST_BYTES_PER_BYTE = 64;
    private static final int LONGEST = 64 << 10;

    private static ActorSystem<SampleProtocol> system;
    private static ActorRef<SampleProtocol> actor;
    private static KryoRegistry registry;
    private static KryoMessageSerializer serializer;

    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private int refused;

    @BeforeAll
    static void startSystem() {
        system =
                ActorSystem.create(
                        Behaviors.ignore(),
                        "hostile-messages",
                        ConfigFactory.parseString("akka.actor.provider = local")
                                .withFallback(ConfigFactory.load()));
        actor = system.systemActorOf(Behaviors.ignore(), "target", Props.empty());
        List<Class<?>> protocols = new ArrayList<>(List.of(SampleProtocol.class));
        protocols.addAll(
                KryoRegistry.load(
                        system.settings().config().getStringList("penstock.wire.protocols")));
        registry = KryoRegistry.of(protocols, () -> ActorRefResolver.get(system));
        serializer = new KryoMessageSerializer(registry);
        for (Class<?> type : registry.types()) {
            valid(0, type); // loads what there is to load
        }
    }

    @AfterAll
    static void stopSystem() {
        system.terminate();
    }

    @Test
    void randomBytes() {
        SplittableRandom random = new SplittableRandom(11);
        for (int i = 0; i < MESSAGES; i++) {
            byte[] bytes = new byte[1 + random.nextInt(i % 500 == 0 ? LONGEST : 300)];
            random.nextBytes(bytes);
            if (i % 10 != 0) {
                bytes[0] = (byte) (102 + random.nextInt(registry.types().size()));
            }
            receive(bytes, i);
        }
        assertThat(refused).isGreaterThan(MESSAGES / 2);
    }

    @Test
    void flippedBits() {
        SplittableRandom random = new SplittableRandom(12);
        for (int i = 0; i < MESSAGES; i++) {
            byte[] bytes = valid(i, type(i));
            for (int flips = 1 + random.nextInt(4); flips > 0; flips--) {
                bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
            }
            receive(bytes, i);
        }
        assertThat(refused).isPositive();
    }

    /** Wherever a length may be, one that promises up to two billion elements. */
    @Test
    void lengthsThatLie() {
        SplittableRandom random = new SplittableRandom(13);
        for (int i = 0; i < MESSAGES; i++) {
            byte[] bytes = valid(i, type(i));
            byte[] longer = Arrays.copyOf(bytes, bytes.length + 5 + random.nextInt(20));
            int at = 1 + random.nextInt(bytes.length);
            for (int k = 0; k < 1 + random.nextInt(4); k++) {
                longer[at + k] = (byte) (0x80 | random.nextInt(128));
            }
            longer[at + 4] = (byte) random.nextInt(16);
            receive(longer, i);
        }
        assertThat(refused).isPositive();
    }

    @Test
    void partsOfSeveralMessages() {
        SplittableRandom random = new SplittableRandom(14);
        for (int i = 0; i < MESSAGES; i++) {
            byte[] head = valid(i, type(i));
            byte[] tail = valid(i + 1, type(random.nextInt(1000)));
            int cut = random.nextInt(head.length + 1);
            int from = random.nextInt(tail.length + 1);
            byte[] bytes = Arrays.copyOf(head, Math.max(1, cut + tail.length - from));
            System.arraycopy(tail, from, bytes, cut, tail.length - from);
            receive(bytes, i);
        }
        assertThat(refused).isPositive();
    }

    private static Class<?> type(int i) {
        return registry.types().get(i % registry.types().size());
    }

    private static byte[] valid(int seed, Class<?> type) {
        return serializer.toBinary(new SampleValues(seed, actor).of(type));
    }

    private void receive(byte[] bytes, int round) {
        long most = MOST_BYTES + (long) MOST_BYTES_PER_BYTE * bytes.length;
        long taken = taken(bytes, round);
        if (taken > most) {
            taken = taken(bytes, round); // what the JVM allocates once is not the message's
        }
        if (taken > most) {
            throw new AssertionError(
                    "message %d: %d bytes took more than %d: %s"
                            .formatted(round, bytes.length, most, Arrays.toString(bytes)));
        }
    }

    private long taken(byte[] bytes, int round) {
        long before = threads.getCurrentThreadAllocatedBytes();
        try {
            serializer.fromBinary(bytes, registry.fingerprint());
        } catch (NotSerializableException e) {
            refused++;
        } catch (RuntimeException | Error e) {
            throw new AssertionError("message %d: %s".formatted(round, Arrays.toString(bytes)), e);
        }
        return threads.getCurrentThreadAllocatedBytes() - before;
    }
}
