package dev.penstock.runtime.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class TcpRelayTest {
    private static final InetAddress HERE = InetAddress.getLoopbackAddress();

    private ServerSocket node;
    private TcpRelay relay;
    private InetSocketAddress advertised;

    @BeforeEach
    void standBeforeANode() throws IOException {
        node = new ServerSocket(0, 10, HERE);
        try (var free = new ServerSocket(0, 1, HERE)) {
            advertised = new InetSocketAddress(HERE, free.getLocalPort());
        }
        relay = TcpRelay.start(advertised, new InetSocketAddress(HERE, node.getLocalPort()));
    }

    @AfterEach
    void close() throws IOException {
        relay.close();
        node.close();
    }

    private Socket connect() throws IOException {
        return new Socket(advertised.getAddress(), advertised.getPort());
    }

    @Test
    void passesOnBothWaysUntilOneSideEnds() throws IOException {
        expectBothWays();
    }

    private void expectBothWays() throws IOException {
        try (Socket other = connect();
                Socket own = node.accept()) {
            other.getOutputStream().write(1);
            own.getOutputStream().write(2);

            assertThat(own.getInputStream().read()).isEqualTo(1);
            assertThat(other.getInputStream().read()).isEqualTo(2);

            other.shutdownOutput();
            assertThat(own.getInputStream().read()).isEqualTo(-1);
            own.getOutputStream().write(3);
            assertThat(other.getInputStream().read()).isEqualTo(3);
        }
    }

    @Test
    void aResetEndsWhatIsConnectedAndNothingElse() throws IOException {
        try (Socket other = connect();
                Socket own = node.accept()) {
            own.getOutputStream().write(1);
            assertThat(other.getInputStream().read()).isEqualTo(1);

            assertThat(relay.reset()).isEqualTo(1);

            assertThatThrownBy(() -> other.getInputStream().read()).isInstanceOf(IOException.class);
            assertThatThrownBy(() -> own.getInputStream().read()).isInstanceOf(IOException.class);
        }
        expectBothWays();
    }

    @Test
    void aCutKeepsWhatIsMeantForTheNodeUntilItEnds() throws IOException {
        try (Socket other = connect();
                Socket own = node.accept()) {
            own.setSoTimeout(300);
            relay.cut(Duration.ofSeconds(2));
            other.getOutputStream().write(1);
            own.getOutputStream().write(2);

            assertThat(other.getInputStream().read()).isEqualTo(2);
            assertThatThrownBy(() -> own.getInputStream().read())
                    .isInstanceOf(SocketTimeoutException.class);
            own.setSoTimeout(0);
            assertThat(own.getInputStream().read()).isEqualTo(1);
        }
    }

    @Test
    void whoConnectsToANodeThatIsGoneIsToldByAReset() throws IOException {
        node.close();

        try (Socket other = connect()) {
            assertThatThrownBy(() -> other.getInputStream().read()).isInstanceOf(IOException.class);
        }
    }
}
