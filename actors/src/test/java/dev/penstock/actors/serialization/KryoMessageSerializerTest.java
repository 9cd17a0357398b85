package dev.penstock.actors.serialization;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Props;
import akka.actor.typed.javadsl.Behaviors;
import com.typesafe.config.ConfigFactory;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.serialization.SampleProtocol.Branch;
import dev.penstock.actors.serialization.SampleProtocol.Colour;
import dev.penstock.actors.serialization.SampleProtocol.Leaf;
import dev.penstock.actors.serialization.SampleProtocol.Nested;
import dev.penstock.actors.serialization.SampleProtocol.Question;
import dev.penstock.actors.spi.RankSteps;
import java.io.NotSerializableException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class KryoMessageSerializerTest {
    private static ActorSystem<SampleProtocol> system;
    private static ActorRef<SampleProtocol> actor;
    private static KryoRegistry registry;
    private static KryoMessageSerializer serializer;

    @BeforeAll
    static void startSystem() {
        system =
                ActorSystem.create(
                        Behaviors.ignore(),
                        "serializer-test",
                        ConfigFactory.parseString("akka.actor.provider = local")
                                .withFallback(ConfigFactory.load()));
        actor = system.systemActorOf(Behaviors.ignore(), "target", Props.empty());
        List<Class<?>> protocols = new ArrayList<>();
        protocols.add(SampleProtocol.class);
        protocols.addAll(
                KryoRegistry.load(
                        system.settings().config().getStringList("penstock.wire.protocols")));
        registry = KryoRegistry.of(protocols, () -> ActorRefResolver.get(system));
        serializer = new KryoMessageSerializer(registry);
    }

    @AfterAll
    static void stopSystem() {
        system.terminate();
    }

    /** Else the message would not fit into a frame, and the run would wait for it in vain. */
    @Test
    void theTimesOfManyOpsTakeLittleRoom() throws Exception {
        int ops = 200_000; // 2,048 micro-batches in 16 slices, forward, backward and transfers
        long[] starts = new long[ops];
        long[] ends = new long[ops];
        long now = 1L << 60;
        for (int op = 0; op < ops; op++) {
            starts[op] = now;
            ends[op] = now + 700_000;
            now = ends[op] + 300;
        }
        var timings = RankSteps.of(3, starts, ends, now, now + 5, 1 << 20, 0);

        byte[] bytes = serializer.toBinary(new RankEvent.StepDone(3, 1, 17, timings));

        assertThat(bytes).hasSizeLessThan(2 << 20);
        var back = (RankEvent.StepDone) serializer.fromBinary(bytes, registry.fingerprint());
        assertThat(back.timings().opStartNanos()).isEqualTo(starts);
        assertThat(back.timings().opEndNanos()).isEqualTo(ends);
    }

    @Test
    void everyMessageComesBackEqual() throws Exception {
        for (Class<?> type : registry.types()) {
            for (int seed = 0; seed < 20; seed++) {
                Object message = new SampleValues(seed, actor).of(type);

                Object back = throughBuffer(message);

                assertThat(back)
                        .as("seed %d of %s", seed, type)
                        .usingRecursiveComparison()
                        .withStrictTypeChecking()
                        .withEqualsForType(Object::equals, ActorRef.class)
                        .isEqualTo(message);
            }
        }
    }

    @Test
    void anActorReferenceStillReachesItsActor() throws Exception {
        Question back = (Question) throughBuffer(new Question("who?", actor));

        assertThat(back.replyTo()).isEqualTo(actor);
    }

    @Test
    void truncatedMessagesAreRefused() {
        byte[] whole = serializer.toBinary(sample());
        for (int length = 0; length < whole.length; length++) {
            byte[] part = Arrays.copyOf(whole, length);
            assertThatThrownBy(() -> serializer.fromBinary(part, registry.fingerprint()))
                    .as("%d of %d bytes", length, whole.length)
                    .isInstanceOf(NotSerializableException.class);
        }
    }

    @Test
    void aHugeLengthIsRefusedBeforeAnythingIsAllocated() {
        byte[] bytes =
                serializer.toBinary(new Nested(Colour.RED, List.of(), new Leaf(1), List.of()));
        int lengthOfLeaves = bytes.length - 7;
        byte[] hostile = Arrays.copyOf(bytes, bytes.length + 5);
        Arrays.fill(hostile, lengthOfLeaves, lengthOfLeaves + 4, (byte) 0xff);
        hostile[lengthOfLeaves + 4] = 0x07;

        assertThatThrownBy(() -> serializer.fromBinary(hostile, registry.fingerprint()))
                .isInstanceOf(NotSerializableException.class)
                .hasMessageContaining("a length of 2147483647 elements");
    }

    @Test
    void deepNestingIsRefused() {
        SampleProtocol.Tree tree = new Leaf(1);
        for (int depth = 0; depth < 100; depth++) {
            tree = new Branch(List.of(tree));
        }
        Nested tooDeep = new Nested(Colour.GREEN, List.of(), tree, List.of());

        assertThatThrownBy(() -> serializer.toBinary(tooDeep)).hasMessageContaining("Max depth");
    }

    @Test
    void anotherVersionsMessagesAreRefusedByTheManifest() {
        byte[] bytes = serializer.toBinary(sample());

        assertThatThrownBy(() -> serializer.fromBinary(bytes, "0123456789abcdef"))
                .isInstanceOf(NotSerializableException.class)
                .hasMessageContaining("another version")
                .hasMessageContaining(registry.fingerprint());
    }

    @Test
    void theRecordsOwnChecksHoldForWhatComesFromOutside() {
        byte[] bytes = serializer.toBinary(new Leaf(1));
        bytes[bytes.length - 1] = (byte) 0x80; // little-endian: the sign

        assertThatThrownBy(() -> serializer.fromBinary(bytes, registry.fingerprint()))
                .hasMessageContaining("a leaf is not negative");
    }

    /** Kryo's reader of strings would take the two billion characters that this one claims. */
    @Test
    void kryosOwnTypesAreNeverRead() {
        byte[] string = {3, (byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0xff, 0x0f, 'x'};

        assertThatThrownBy(() -> serializer.fromBinary(string, registry.fingerprint()))
                .isInstanceOf(NotSerializableException.class)
                .hasMessageContaining("expected a message's number, at least 100, got 1");
    }

    @Test
    void classNamesAreNeverRead() {
        byte[] bytes = {1, 0, (byte) 'j', (byte) 'a', (byte) 'v', (byte) 0xe1};

        assertThatThrownBy(() -> serializer.fromBinary(bytes, registry.fingerprint()))
                .hasMessageContaining("a class name on a wire that carries numbers only");
    }

    private static Object sample() {
        return new Nested(
                Colour.GREEN,
                List.of(new Leaf(3), new Leaf(4)),
                new Branch(List.of(new Leaf(5))),
                List.of(List.of("a", "b"), List.of()));
    }

    private static Object throughBuffer(Object message) throws NotSerializableException {
        ByteBuffer buffer = ByteBuffer.allocate(64 * 1024);
        serializer.toBinary(message, buffer);
        return serializer.fromBinary(buffer.flip(), serializer.manifest(message));
    }
}
