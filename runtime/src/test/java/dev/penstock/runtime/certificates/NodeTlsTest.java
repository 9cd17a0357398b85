package dev.penstock.runtime.certificates;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import akka.actor.Address;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.javadsl.Behaviors;
import akka.cluster.Member;
import akka.cluster.MemberStatus;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.Join;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.StreamSupport;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Real actor systems over real sockets, each a node of its own. */
@Timeout(180)
class NodeTlsTest {
    private static final String SETTINGS =
            """
            akka {
              actor.provider = cluster
              loglevel = OFF
              stdout-loglevel = OFF
              coordinated-shutdown.run-by-jvm-shutdown-hook = off
              remote.artery {
                transport = tcp
                canonical { hostname = "127.0.0.1", port = 0 }
              }
              cluster {
                jmx.enabled = off
                retry-unsuccessful-join-after = 500 ms
              }
            }
            """;

    @TempDir static Path folder;

    private static NodeFiles seedFiles;
    private static NodeFiles workerFiles;
    private static NodeFiles elsewhereFiles;
    private static NodeFiles otherAuthoritysFiles;

    private final List<ActorSystem<Void>> systems = new ArrayList<>();

    @BeforeAll
    static void makeCertificates() {
        CertificateAuthority authority = CertificateAuthority.create(folder.resolve("ours"));
        seedFiles = authority.issue("seed", List.of("127.0.0.1"), 2);
        workerFiles = authority.issue("worker", List.of("127.0.0.1"), 2);
        elsewhereFiles = authority.issue("10.9.8.7", List.of(), 2);
        otherAuthoritysFiles =
                CertificateAuthority.create(folder.resolve("theirs"))
                        .issue("127.0.0.1", List.of(), 2);
    }

    @AfterEach
    void endSystems() {
        systems.forEach(ActorSystem::terminate);
        systems.forEach(system -> system.getWhenTerminated().toCompletableFuture().join());
    }

    @Test
    void nodesOfOneAuthorityFormAClusterAndUninvitedOnesAreRefusedByASeedThatStaysUp()
            throws Exception {
        ActorSystem<Void> seed = start(NodeTls.settings(seedFiles));
        Cluster.get(seed).manager().tell(Join.create(address(seed)));
        ActorSystem<Void> unencrypted = start(ConfigFactory.empty());
        ActorSystem<Void> stranger = start(NodeTls.settings(otherAuthoritysFiles));
        for (ActorSystem<Void> uninvited : List.of(unencrypted, stranger)) {
            Cluster.get(uninvited).manager().tell(Join.create(address(seed)));
        }
        int port = address(seed).getPort().map(Integer.class::cast).orElseThrow();

        for (int i = 0; i < 20; i++) {
            refuses(port, clientWithoutCertificate());
            refuses(port, NodeCertificate.read(mixed()).context());
            speakInTheClear(port);
        }
        ActorSystem<Void> worker = start(NodeTls.settings(workerFiles));
        Cluster.get(worker).manager().tell(Join.create(address(seed)));

        Awaitility.await()
                .atMost(Duration.ofSeconds(90))
                .until(() -> upIn(seed).size() == 2 && upIn(worker).size() == 2);
        assertThat(upIn(seed)).containsExactlyInAnyOrder(address(seed), address(worker));
        assertThat(upIn(stranger)).isEmpty();
        assertThat(upIn(unencrypted)).isEmpty();
    }

    /** Of the seed's authority, so that the client is content; its own certificate is not. */
    private static NodeFiles mixed() {
        return new NodeFiles(
                otherAuthoritysFiles.certificate(),
                otherAuthoritysFiles.key(),
                seedFiles.authority());
    }

    @Test
    void aCertificateForAnotherHostIsRefusedByWhoeverOpensTheConnection() {
        assertThatThrownBy(() -> shakeHands(workerFiles, elsewhereFiles))
                .isInstanceOf(SSLException.class)
                .hasMessageContaining("127.0.0.1");
    }

    @Test
    void eachEndRefusesACertificateOfAnotherAuthority() {
        assertThatThrownBy(() -> shakeHands(workerFiles, otherAuthoritysFiles))
                .isInstanceOf(SSLException.class);
        assertThatThrownBy(() -> shakeHands(mixed(), seedFiles)).isInstanceOf(SSLException.class);
    }

    @Test
    void goodCertificatesAgreeOnTheNewestProtocol() throws Exception {
        assertThat(shakeHands(workerFiles, seedFiles)).isEqualTo("TLSv1.3");
    }

    private static String shakeHands(NodeFiles opens, NodeFiles accepts) throws SSLException {
        SSLEngine client = new NodeTls(opens).createClientSSLEngine("127.0.0.1", 2551);
        Handshake.between(client, new NodeTls(accepts).createServerSSLEngine("127.0.0.1", 2551));
        return client.getSession().getProtocol();
    }

    private ActorSystem<Void> start(Config tls) {
        ActorSystem<Void> system =
                ActorSystem.create(
                        Behaviors.empty(),
                        "penstock",
                        tls.withFallback(ConfigFactory.parseString(SETTINGS))
                                .withFallback(ConfigFactory.load()));
        systems.add(system);
        return system;
    }

    private static Address address(ActorSystem<Void> system) {
        return Cluster.get(system).selfMember().address();
    }

    private static List<Address> upIn(ActorSystem<Void> system) {
        return StreamSupport.stream(Cluster.get(system).state().getMembers().spliterator(), false)
                .filter(member -> member.status().equals(MemberStatus.up()))
                .map(Member::address)
                .toList();
    }

    private static SSLContext clientWithoutCertificate() throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry(
                "ours", NodeCertificate.read(workerFiles).authorities().getFirst());
        TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLSv1.3");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    /** In TLS 1.3 a client hears of its refusal when it first reads. */
    private static void refuses(int port, SSLContext client) {
        assertThatThrownBy(
                        () -> {
                            try (var socket =
                                    (SSLSocket)
                                            client.getSocketFactory()
                                                    .createSocket("127.0.0.1", port)) {
                                socket.setSoTimeout(30_000);
                                socket.startHandshake();
                                if (socket.getInputStream().read() < 0) {
                                    throw new SSLException("closed");
                                }
                            }
                        })
                .isInstanceOfAny(SSLException.class, SocketException.class);
    }

    private static void speakInTheClear(int port) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(30_000);
            socket.getOutputStream().write("AKKA hello, let me in\n".repeat(20).getBytes(US_ASCII));
            byte[] answer = socket.getInputStream().readAllBytes();
            assertThat(answer.length).as("an alert at most").isLessThan(64);
        } catch (SocketException e) {
            assertThat(e).hasMessageContaining("reset");
        }
    }
}
