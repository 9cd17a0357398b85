package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import akka.cluster.Invalid;
import akka.cluster.Valid$;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigValueFactory;
import org.junit.jupiter.api.Test;
import scala.jdk.javaapi.CollectionConverters;

class IdentityTest {
    private final Identity here = new Identity("blue", 1, "ab12", "node a");

    @Test
    void equalsMayWorkTogether() {
        assertThat(here.differenceFrom(new Identity("blue", 1, "ab12", "node b"))).isEmpty();
    }

    @Test
    void everyDifferenceIsNamedWithBothSides() {
        assertThat(here.differenceFrom(new Identity("red", 2, "cd34", "node b")))
                .hasValueSatisfying(
                        text ->
                                assertThat(text)
                                        .contains("node a and node b")
                                        .contains("cluster-id blue here, red there")
                                        .contains("protocol version 1 here, 2 there")
                                        .contains("message registry ab12 here, cd34 there"));
    }

    @Test
    void theCheckOfAJoinComparesWhatTravelsInTheConfiguration() {
        IdentityCheck check = new IdentityCheck();

        assertThat(check.check(config(here), config(here))).isEqualTo(Valid$.MODULE$);
        assertThat(check.check(config(new Identity("red", 1, "ab12", "b")), config(here)))
                .isInstanceOf(Invalid.class);
        assertThat(check.check(ConfigFactory.empty(), config(here))).isInstanceOf(Invalid.class);
        assertThat(CollectionConverters.asJava(check.requiredKeys()))
                .allMatch(config(here)::hasPath)
                .hasSize(4);
    }

    @Test
    void aGreetingIsTextThatEveryVersionReads() {
        assertThat(Greeting.read(Greeting.ask(here, "akka://x"))).isEqualTo(here);
        assertThat(Greeting.read("nonsense\n=\n\0").differenceFrom(here)).isPresent();
    }

    private static Config config(Identity identity) {
        return ConfigFactory.empty()
                .withValue("penstock.identity", ConfigValueFactory.fromMap(identity.facts()));
    }
}
