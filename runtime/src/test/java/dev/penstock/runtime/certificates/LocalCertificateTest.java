package dev.penstock.runtime.certificates;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.javadsl.Behaviors;
import akka.cluster.MemberStatus;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.Join;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.StreamSupport;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Every user of a machine reaches the same loopback ports; only one of them has the key. */
@Timeout(180)
class LocalCertificateTest {
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
              cluster { jmx.enabled = off, retry-unsuccessful-join-after = 500 ms }
            }
            """;

    @TempDir private Path folder;

    private final List<ActorSystem<Void>> systems = new ArrayList<>();

    @AfterEach
    void endSystems() {
        systems.forEach(ActorSystem::terminate);
        systems.forEach(system -> system.getWhenTerminated().toCompletableFuture().join());
    }

    @Test
    void onlyItsOwnerReadsTheKey() throws IOException {
        Path local = folder.resolve("home/.penstock/local");

        assertThat(permissions(LocalCertificate.fresh(local).key())).isEqualTo("rw-------");
        assertThat(permissions(local)).isEqualTo("rwx------");
    }

    @Test
    void theCertificateIsOneThatTheJdkReadsAndItsKeySignedIt() throws Exception {
        NodeCertificate made = NodeCertificate.read(LocalCertificate.fresh(folder.resolve("key")));
        X509Certificate certificate = made.chain().getFirst();

        certificate.checkValidity();
        certificate.verify(certificate.getPublicKey());
        assertThat(made.problemsAt("127.0.0.1"))
                .as("the key fits; it names no host, for all that have it are trusted")
                .singleElement()
                .asString()
                .contains("the certificate is for []");
    }

    /** Some file systems know no permissions; a run on one machine is not refused for that. */
    @Test
    void aKeyThatCannotBeProtectedIsUsed() throws IOException {
        NodeFiles files = LocalCertificate.fresh(folder.resolve("key"));
        Files.setPosixFilePermissions(files.key(), PosixFilePermissions.fromString("rwxrwxrwx"));

        assertThat(NodeCertificate.readLocal(files).key().getAlgorithm()).isEqualTo("EC");
    }

    @Test
    void aFreshKeyIsAnotherOne() {
        NodeFiles files = LocalCertificate.fresh(folder.resolve("key"));
        var first = NodeCertificate.read(files).key();

        LocalCertificate.fresh(folder.resolve("key"));

        assertThat(NodeCertificate.read(files).key()).isNotEqualTo(first);
    }

    @Test
    void processesThatMakeTheUsersKeyAtOneTimeAllGetTheSame() throws Exception {
        try (var threads = Executors.newFixedThreadPool(8)) {
            Callable<X509Certificate> user =
                    () -> NodeCertificate.read(LocalCertificate.ofHome(folder)).chain().getFirst();
            Set<X509Certificate> found = new HashSet<>();
            for (Future<X509Certificate> each :
                    threads.invokeAll(List.of(user, user, user, user))) {
                found.add(each.get());
            }

            assertThat(found).hasSize(1);
            assertThat(folder.resolve(".penstock"))
                    .isDirectoryNotContaining("glob:**/.unfinished*");
        }
    }

    @Test
    void aUserWithoutAHomeIsTold() {
        assertThatThrownBy(() -> LocalCertificate.ofHome(Path.of("?")))
                .isInstanceOf(CertificatesException.class)
                .hasMessageContaining("home directory");
    }

    /** Another user has no key, or one of his own; either way nothing he says is heard. */
    @Test
    void anotherUserOfTheMachineDoesNotJoin() {
        Config mine = NodeTls.localSettings(LocalCertificate.fresh(folder.resolve("mine")));
        Config theirs = NodeTls.localSettings(LocalCertificate.fresh(folder.resolve("theirs")));
        ActorSystem<Void> first = start(mine);
        ActorSystem<Void> second = start(mine);
        ActorSystem<Void> stranger = start(theirs);
        ActorSystem<Void> inTheClear = start(ConfigFactory.empty());

        for (ActorSystem<Void> each : List.of(first, stranger, inTheClear, second)) {
            Cluster.get(each)
                    .manager()
                    .tell(Join.create(Cluster.get(first).selfMember().address()));
        }

        Awaitility.await().atMost(Duration.ofSeconds(90)).until(() -> up(first) == 2);
        assertThat(up(stranger)).isZero();
        assertThat(up(inTheClear)).isZero();
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

    private static long up(ActorSystem<Void> system) {
        return StreamSupport.stream(Cluster.get(system).state().getMembers().spliterator(), false)
                .filter(member -> member.status().equals(MemberStatus.up()))
                .count();
    }

    private static String permissions(Path file) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    }
}
