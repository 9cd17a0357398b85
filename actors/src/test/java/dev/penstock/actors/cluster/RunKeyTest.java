package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import com.typesafe.config.ConfigFactory;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class RunKeyTest {
    @Test
    void eachRunHasAKeyOfItsOwn() {
        assertThat(RunKey.random()).isNotEqualTo(RunKey.random());
    }

    @Test
    void allOfItIsInTheSecret() {
        byte[] secret = new RunKey(1, 2, 3, -1).secret().getEncoded();

        assertThat(HexFormat.of().formatHex(secret))
                .isEqualTo("000000000000000100000000000000020000000000000003ffffffffffffffff");
    }

    @Test
    void noMessageShowsItInALog() {
        var hosting =
                new ClusterEffect.HostRanks(
                        "r", "n", 1, List.of(1), "", Optional.of(new RunKey(77, 78, 79, 80)));

        assertThat(hosting.toString()).contains("RunKey[secret]").doesNotContain("77", "80");
    }

    @Test
    void itTravelsInTlsOnly() {
        String transport = "akka.remote.artery.transport = ";

        assertThat(RunKey.mayTravel(ConfigFactory.parseString(transport + "tls-tcp"))).isTrue();
        assertThat(RunKey.mayTravel(ConfigFactory.parseString(transport + "tcp"))).isFalse();
    }
}
