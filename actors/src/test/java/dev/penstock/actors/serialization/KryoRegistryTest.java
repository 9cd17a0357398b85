package dev.penstock.actors.serialization;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import akka.actor.typed.ActorRefResolver;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class KryoRegistryTest {
    record OnlyNumbers(int a, long b) implements WireMessage {}

    record OnlyNumbersSwapped(long b, int a) implements WireMessage {}

    record Unsendable(Object anything, Map<String, Integer> table, Set<Long> set)
            implements WireMessage {}

    sealed interface WithPrivate extends WireMessage {
        record Public() implements WithPrivate {}
    }

    private record ToMyself() implements WithPrivate {}

    @Test
    void everythingThatLiesInAMessageIsFound() {
        assertThat(registry(SampleProtocol.class).types())
                .contains(
                        SampleProtocol.Question.class,
                        SampleProtocol.Leaf.class,
                        SampleProtocol.Branch.class)
                .doesNotContain(SampleProtocol.class);
    }

    @Test
    void whatCannotTravelIsListedAtOnce() {
        assertThatThrownBy(() -> registry(Unsendable.class))
                .hasMessageContaining("Unsendable.anything: java.lang.Object has no form")
                .hasMessageContaining("Unsendable.table: java.util.Map")
                .hasMessageContaining("Unsendable.set");
    }

    @Test
    void messagesOfAnActorToItselfStayAtHome() {
        assertThat(registry(WithPrivate.class).types()).containsExactly(WithPrivate.Public.class);
        assertThat(new ToMyself()).isInstanceOf(WireMessage.class);
    }

    @Test
    void theFingerprintTellsVersionsApart() {
        assertThat(registry(OnlyNumbers.class).fingerprint())
                .hasSize(16)
                .isEqualTo(registry(OnlyNumbers.class).fingerprint())
                .isNotEqualTo(registry(OnlyNumbersSwapped.class).fingerprint())
                .isNotEqualTo(registry(OnlyNumbers.class, OnlyNumbersSwapped.class).fingerprint());
    }

    @Test
    void protocolsThatDoNotExistAreNamed() {
        assertThatThrownBy(() -> KryoRegistry.load(List.of("no.Such", "java.lang.String", "x.Y")))
                .hasMessageContaining("[no.Such, x.Y]");
    }

    private static KryoRegistry registry(Class<?>... protocols) {
        return KryoRegistry.of(List.of(protocols), KryoRegistryTest::noResolver);
    }

    private static ActorRefResolver noResolver() {
        throw new AssertionError("no reference travels here");
    }
}
